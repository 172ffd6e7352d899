#pragma once
// A loaded DSpark drafter, paired with the target it drafts for.

#include <memory>
#include <string>
#include <vector>

#include "drafter/hyperparameters.h"
#include "drafter/weights.h"
#include "ds4/model.h"

namespace ds4 {

/// Immutable after loading. Embedding and output matrix are the target's.
class Drafter {
   public:
    /// Maps `path`, recognises its contract by its tensors, checks it alone (FormatError) and against the target
    /// (PairError, listing every mismatch), and puts the weights on the target's device (BackendError). A drafter that
    /// loads can draft.
    static std::shared_ptr<const Drafter> load(const std::string& path, const Model& target,
                                               const LoadProgress& progress = {});

    /// One that has no data: for measuring what graphs of it take.
    static std::shared_ptr<const Drafter> describe(const gguf::File& file, const model::Hyperparameters& target);

    const gguf::File& file() const { return *file_; }
    /// Holds the tensors.
    ggml_context* context() const { return ctx_.get(); }
    const drafter::Hyperparameters& hyperparameters() const { return hp_; }
    const drafter::Weights& weights() const { return weights_; }
    /// Identifies the weights, as Model::fingerprint does.
    uint64_t fingerprint() const;
    /// Bytes of its weights where they are computed with.
    size_t bytes() const;

   private:
    Drafter() = default;
    std::shared_ptr<const gguf::File> file_;
    drafter::Hyperparameters hp_;
    std::vector<std::shared_ptr<void>> connections_;  // to remote devices; outlive what lies there
    ggml_context_ptr ctx_;
    std::vector<ggml_backend_buffer_ptr> buffers_;
    std::deque<kernels::PackedTensor> packed_;
    drafter::Weights weights_;
};

}  // namespace ds4
