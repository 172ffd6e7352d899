#pragma once
// A loaded DSpark drafter, paired with the target it drafts for.

#include <memory>
#include <string>

#include "ds4/model.h"

namespace ds4 {

namespace drafter {
struct Hyperparameters;
struct Weights;
}  // namespace drafter

/// Immutable after loading. Embedding and output matrix are the target's.
class Drafter {
   public:
    /// Maps `path`, recognises its contract by its tensors, checks it alone (FormatError) and against the target
    /// (PairError, listing every mismatch), and loads the weights to the target's device (BackendError). A drafter that
    /// loads can draft.
    static std::shared_ptr<const Drafter> load(const std::string& path, const Model& target,
                                               const LoadProgress& progress = {});
    /// A drafter without data, to measure what its graphs need. Throws as `load` does.
    static std::shared_ptr<const Drafter> describe(const gguf::File& file, const model::Hyperparameters& target);
    ~Drafter();

    const gguf::File& file() const;
    /// The ggml context of the tensors.
    ggml_context* context() const;
    const drafter::Hyperparameters& hyperparameters() const;
    const drafter::Weights& weights() const;
    /// Identifies the weights, as Model::fingerprint does.
    uint64_t fingerprint() const;
    /// Bytes of its weights on its device.
    size_t bytes() const;

   private:
    struct Loaded;
    explicit Drafter(std::unique_ptr<Loaded> loaded);
    std::unique_ptr<Loaded> loaded_;
};

}  // namespace ds4
