#pragma once
// The interface of a device's own kernels, the same for all devices. Pointers are the device's; the first size of a
// shape is the one that lies closest, as in ggml. Rows have no gaps. Formulas: docs/dspark.md sections 2.5, 2.7, 2.8
// and 3.

#include <cstdint>
#include <memory>

#include "ggml-backend.h"
#include "kernel_choice.h"

namespace ds4::kernels {

/// Types that the kernels read. Q8_0 in ggml's blocks.
enum class Element : int32_t { f32, f16, bf16, q8_0 };

struct DeviceMatrix {
    const void* data = nullptr;
    Element type = Element::f32;
    int32_t columns = 0, rows = 0;
};

/// Attention of a draft block: every row sees the same context and all rows of the block. Keys are values, too.
struct DraftAttention {
    const float* q;      // [size, heads, n]
    DeviceMatrix ring;   // [size, capacity] F16 or F32: context keys by position mod capacity
    const float* block;  // [size, n]: the block's own keys
    const float* mask;   // [capacity + n, n]: 0, or -inf where a key is not seen
    const float* sinks;  // [heads]
    float* out;          // [size, heads, n]
    int32_t size, heads, n;
    float scale;
};

/// The key of random numbers: philox4x32-10 by this key; every draw has a counter of its own. A head and the
/// acceptance of its proposals may share a key, and the host's generator its seed; the counter is new every cycle.
struct DrawKey {
    uint64_t seed = 0, counter = 0;
};

/// The heads of a draft block, position after position: bias of the token before, its proposal, how sure it is.
struct MarkovHead {
    const float* base;               // [vocab, block]: logits without the bias
    const int32_t* anchor;           // [1]: the token before the first position
    DeviceMatrix embedding, output;  // W1, W2 [rank, vocab]; without data there is no bias
    const float* hidden;             // [hidden_size, block]; read by the confidence head only
    DeviceMatrix confidence;         // [hidden_size (+ rank), 1], with the rank where the head reads W1's row, too
    const float* confidence_bias;    // [1], or null
    float temperature;               // 0 takes the likeliest, the lowest of equals; else draws by Gumbel noise
    DrawKey key;
    int32_t vocab, block, hidden_size;
    int32_t* tokens;     // [block]
    float* logits;       // [vocab, block]: with the bias
    float* log_sum;      // [block]: log of the sum of exp(logits / temperature), of exp(logits) at temperature 0; not
                         // finite where the logits are no distribution, and the token may be any then
    float* confidences;  // [block] after the sigmoid; null without a head
};

/// Acceptance of k proposals by the target's logits: docs/dspark.md section 3's rule for one proposal after another. At
/// temperature 0 a proposal is accepted where it is the row's arg max, and the token after the last accepted one is an
/// arg max, too.
struct DeviceAcceptance {
    const float* p;            // [vocab, k + 1]: logits of the verified rows
    const float* q;            // [vocab, k]: MarkovHead::logits; null where the proposals are point masses
    const int32_t* proposals;  // [k]
    float temperature;
    DrawKey key;
    int32_t vocab, k;
    int32_t* result;  // [2]: how many are accepted, and the token after them; -1 where a row is no distribution
};

/// Runs kernels on one device. Calls return at once and run in order; one thread at a time. Throws BackendError when
/// the device refuses.
class Launcher {
   public:
    virtual ~Launcher() = default;
    virtual void run(const DraftAttention& work) = 0;
    virtual void run(const MarkovHead& work) = 0;
    virtual void run(const DeviceAcceptance& work) = 0;
    /// Waits until everything has run.
    virtual void synchronize() = 0;
};

/// The launcher of a device, or null where this build has none for it or generic ops are requested. On the CPU it is
/// the emulator, where that is requested and in this build.
std::unique_ptr<Launcher> open_launcher(ggml_backend_dev_t device, RequestedKernels requested);

}  // namespace ds4::kernels
