#pragma once
// The KV state of a session: rings addressed by absolute position, with slack, and append-only compressed rows
// (docs/model.md section 3). Rows are rejected by lowering the frontier, without copying or clearing anything.

#include <cstdint>
#include <utility>
#include <vector>

#include "drafter/hyperparameters.h"
#include "ds4/limits.h"
#include "ggml-cpp.h"
#include "model/hyperparameters.h"

namespace ds4::state {

/// The largest number of rows that one forward may write past the frontier and still have rejected.
using ds4::kMaxRows;

/// Return the rows of the rings (docs/model.md section 3.2). With one row less, a later forward would read a row
/// that is overwritten already.
inline int64_t raw_capacity(const model::Hyperparameters& hp) { return hp.window - 1 + kMaxRows; }
inline int64_t carry_capacity(int ratio) { return (ratio == model::kCsaRatio ? 2 * ratio - 1 : ratio - 1) + kMaxRows; }
/// Returns the rows of a drafter's context ring. A draft block at position P reads the `window` positions before P,
/// without P.
inline int64_t context_capacity(const drafter::Hyperparameters& hp) { return hp.stages.window + kMaxRows; }

/// Rounds a number of compressed rows up to one of few lengths, so that graphs can be reused: 0, 64, then steps of a
/// quarter of the largest power of two that is not above `rows`.
int64_t bucket(int64_t rows);

/// The state of a compressor: rings with the rows of incomplete blocks, and the compressed rows.
struct CompressorState {
    ggml_tensor* kv = nullptr;     // [width, carry_capacity] F32, row = position mod carry_capacity
    ggml_tensor* score = nullptr;  // as kv; the position's APE row is already added
    ggml_tensor* rows = nullptr;   // [size, bucket(context / ratio)], row = index of the block
};

/// The state of one layer.
struct LayerState {
    ggml_tensor* raw = nullptr;  // keys [head_size, raw_capacity], row = position mod raw_capacity
    CompressorState compressor;  // null members when the layer's ratio is 0
    CompressorState indexer;     // null members unless the layer is CSA
};

/// The state of a drafter: features and keys of the committed positions; row = position mod context_capacity.
struct DrafterState {
    ggml_tensor* features = nullptr;    // [taps * hidden, context_capacity] F32: outputs of the tapped target layers
    std::vector<ggml_tensor*> context;  // keys of each stage, from the features: [head_size, context_capacity]
};

/// The buffer types of the state: one for each layer, and one for the drafter.
struct BufferTypes {
    std::vector<ggml_backend_buffer_type_t> layers;
    ggml_backend_buffer_type_t drafter;
};

/// Returns one buffer type for all layers and the drafter.
BufferTypes same_buffer_type(ggml_backend_buffer_type_t type, int64_t layers);

/// The state tensors of one session, zero-filled: a masked row is multiplied by 0, and 0 * x must be 0.
class State {
   public:
    /// Allocates the state of a session for `context` positions. `drafter` is null without one. Throws BackendError
    /// when a device has no room.
    State(const model::Hyperparameters& hp, int64_t context, ggml_type kv_type, const BufferTypes& buffer_types,
          const drafter::Hyperparameters* drafter = nullptr);

    const std::vector<LayerState>& layers() const { return layers_; }
    const DrafterState& drafter() const { return drafter_; }
    ggml_type kv_type() const { return kv_type_; }
    /// Sets all state to zero.
    void clear();

    /// Return the rings, which a checkpoint must copy: those of the target, and those of the drafter.
    std::vector<ggml_tensor*> rings() const;
    std::vector<ggml_tensor*> drafter_rings() const;
    /// Returns the tensors of compressed rows, each with its compression ratio.
    std::vector<std::pair<ggml_tensor*, int>> compressed() const;

   private:
    ggml_type kv_type_;
    std::vector<ggml_context_ptr> contexts_;
    std::vector<ggml_backend_buffer_ptr> buffers_;
    std::vector<LayerState> layers_;
    DrafterState drafter_;
};

/// Returns the bytes of a no_alloc context for the tensors of a state.
size_t context_size(const model::Hyperparameters& hp, const drafter::Hyperparameters* drafter = nullptr);

/// Returns the bytes that the tensors of `ctx` would take in buffers of this type, without allocating them.
size_t bytes(ggml_context* ctx, ggml_backend_buffer_type_t type);

/// Create the tensors of one layer, of every layer, or of a drafter in `ctx`, without data.
LayerState describe_layer(ggml_context* ctx, const model::Hyperparameters& hp, int64_t layer, int64_t context,
                          ggml_type kv_type);
std::vector<LayerState> describe_state(ggml_context* ctx, const model::Hyperparameters& hp, int64_t context,
                                       ggml_type kv_type);
DrafterState describe_drafter_state(ggml_context* ctx, const drafter::Hyperparameters& hp, ggml_type kv_type);

}  // namespace ds4::state
