#pragma once
// What a session remembers: rings addressed by absolute position, with slack, and append-only compressed rows
// (docs/model.md section 3). Rejecting rows means lowering the frontier; nothing is copied or cleared.

#include <utility>
#include <vector>

#include "drafter/hyperparameters.h"
#include "ds4/limits.h"
#include "ggml-cpp.h"
#include "model/hyperparameters.h"

namespace ds4::state {

/// Most rows one forward may write past the frontier and still be rejected.
using ds4::kMaxRows;

/// Ring sizes of section 3.2; one row less loses a row that a later forward reads.
inline int64_t raw_capacity(const model::Hyperparameters& hp) { return hp.window - 1 + kMaxRows; }
inline int64_t carry_capacity(int ratio) { return (ratio == model::kCsaRatio ? 2 * ratio - 1 : ratio - 1) + kMaxRows; }
/// A draft block at P reads the W positions before P, which is not among them.
inline int64_t context_capacity(const drafter::Hyperparameters& hp) { return hp.stages.window + kMaxRows; }

/// Compressed rows are read in lengths from a short list, so that graphs can be reused: 0, 64, and then steps of
/// a quarter of the power of two below.
int64_t bucket(int64_t rows);

/// A compressor's carry rings and the rows it completes.
struct CompressorState {
    ggml_tensor* kv = nullptr;     // [width, carry] F32, row = position mod carry
    ggml_tensor* score = nullptr;  // likewise; the position's APE row is already added
    ggml_tensor* rows = nullptr;   // [size, bucket(context / ratio)], row = block
};

struct LayerState {
    ggml_tensor* raw = nullptr;  // [head_size, raw_capacity], row = position mod capacity
    CompressorState compressor;  // null when the ratio is 0
    CompressorState indexer;     // null unless the layer is CSA
};

/// What a drafter reads of the committed positions; row = position mod context_capacity.
struct DrafterState {
    ggml_tensor* features = nullptr;    // [taps * hidden, capacity] F32: tapped streams of the target's forwards
    std::vector<ggml_tensor*> context;  // by stage [head_size, capacity]: keys projected from the features
};

/// The memory of each layer's state, and of a drafter's.
struct Homes {
    std::vector<ggml_backend_buffer_type_t> layers;
    ggml_backend_buffer_type_t drafter;
};
/// One memory for all.
Homes all_in(ggml_backend_buffer_type_t memory, int64_t layers);

/// The tensors of one session, zero-filled: a masked row still meets 0 * x in a product.
class State {
   public:
    /// Throws BackendError when a device has no room.
    State(const model::Hyperparameters& hp, int64_t context, ggml_type kv_type, const Homes& homes,
          const drafter::Hyperparameters* drafter = nullptr);

    const std::vector<LayerState>& layers() const { return layers_; }
    const DrafterState& drafter() const { return drafter_; }
    ggml_type kv_type() const { return kv_type_; }
    void clear();

    /// The target's position-addressed rings (what a checkpoint must copy), and the drafter's.
    std::vector<ggml_tensor*> rings() const;
    std::vector<ggml_tensor*> drafter_rings() const;
    /// The append-only rows with the ratio each belongs to.
    std::vector<std::pair<ggml_tensor*, int>> compressed() const;

   private:
    ggml_type kv_type_;
    std::vector<ggml_context_ptr> contexts_;
    std::vector<ggml_backend_buffer_ptr> buffers_;
    std::vector<LayerState> layers_;
    DrafterState drafter_;
};

/// Bytes of a ggml context that holds the description of a state.
size_t context_size(const model::Hyperparameters& hp, const drafter::Hyperparameters* drafter = nullptr);

/// Bytes that the tensors of `ctx` take in a memory, without allocating them.
size_t bytes(ggml_context* ctx, ggml_backend_buffer_type_t memory);

/// Creates the tensors of one layer, or of every layer, in `ctx` without memory.
LayerState describe_layer(ggml_context* ctx, const model::Hyperparameters& hp, int64_t layer, int64_t context,
                          ggml_type kv_type);
std::vector<LayerState> describe_state(ggml_context* ctx, const model::Hyperparameters& hp, int64_t context,
                                       ggml_type kv_type);
DrafterState describe_drafter_state(ggml_context* ctx, const drafter::Hyperparameters& hp, ggml_type kv_type);

}  // namespace ds4::state
