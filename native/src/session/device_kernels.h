#pragma once
// A device's own kernels in one session: the steps that they compute, and the memory of their results.

#include <memory>
#include <span>
#include <vector>

#include "ds4/drafter.h"
#include "graph/draft.h"
#include "launcher.h"
#include "session/traffic.h"

namespace ds4::session {

/// The steps of a session that the device's own kernels compute; fixed when the session opens.
struct OwnSteps {
    bool attention, chain, acceptance;
};

/// The results of a drafted block that the host reads.
struct Chained {
    std::vector<int32_t> tokens;
    std::vector<float> log_sum;      // of exp(logits / temperature)
    std::vector<float> confidences;  // empty without a head
};

class DeviceKernels {
   public:
    /// Returns null if the model's device has no kernels of its own, or with DS4_OPS=generic. Throws BackendError if
    /// the device has no memory left.
    static std::unique_ptr<DeviceKernels> open(const Model& model, const Drafter* drafter, ggml_type kv_type,
                                               Traffic& traffic);

    const OwnSteps& steps() const { return steps_; }
    kernels::Launcher& launcher() { return *launcher_; }
    /// Display name of this device's kind of kernels: "CUDA", "emulated".
    const char* name() const;
    /// Sets the implementation of the ops that these kernels compute.
    void add_to(kernels::KernelChoice& choice) const;

    /// Draws the tokens of a block from the base logits that a graph has computed; at temperature 0 it takes the
    /// likeliest. Waits for the result. The logits with their bias stay on the device until the next block.
    Chained chain(const graph::Draft& draft, int32_t anchor, float temperature, kernels::DrawKey key);
    const ggml_tensor* logits() const { return logits_; }  // [vocab, block]

    /// Accepts proposals by the target's logits [vocab, proposals + 1], and waits for the result. `drawn`: the
    /// proposals are the first of the latest block, drawn at the same temperature; otherwise q is 1 at each of them.
    void accept(const ggml_tensor* rows, std::span<const int32_t> proposals, bool drawn, float temperature,
                kernels::DrawKey key);
    const ggml_tensor* accept_result() const {
        return accept_result_;
    }  // [2] I32: the number of accepted proposals, and the token after them

    /// Copies one row of logits into kept_row().
    void keep_row(const ggml_tensor* rows, int64_t row);
    const ggml_tensor* kept_row() const { return kept_row_; }  // [vocab]

   private:
    DeviceKernels(const Model& model, const Drafter* drafter, Traffic& traffic);
    void describe(int64_t vocab);
    void require_here(const ggml_tensor* t, const char* what) const;
    Chained read_chained();

    ggml_backend_dev_t device_;
    const Drafter* drafter_;
    Traffic& traffic_;
    OwnSteps steps_{};
    std::unique_ptr<kernels::Launcher> launcher_;
    ggml_context_ptr ctx_;
    ggml_backend_buffer_ptr buffer_;
    ggml_tensor *proposals_, *accept_result_, *kept_row_;
    ggml_tensor *anchor_ = nullptr, *logits_ = nullptr;
    ggml_tensor* chained_ = nullptr;  // [block, 2 or 3] I32: tokens, then the bits of log_sum and confidences
};

}  // namespace ds4::session
