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

/// A loaded drafter. It is immutable and shared by sessions. It uses the embedding and the output matrix of its target.
class Drafter {
   public:
    /// Maps the file, recognises its contract by the names of its tensors, checks it alone and against the target, and
    /// loads the weights to the device of the target's head. A drafter that loads can draft. Throws FormatError for the
    /// file, PairError listing everything that does not fit the target, and BackendError for a device without room.
    static std::shared_ptr<const Drafter> load(const std::string& path, const Model& target,
                                               const LoadProgress& progress = {});
    /// Returns a drafter whose tensors have no data, for measuring the memory of its graphs. Throws FormatError and
    /// PairError as `load` does.
    static std::shared_ptr<const Drafter> describe(const gguf::File& file, const model::Hyperparameters& target);
    ~Drafter();

    const gguf::File& file() const;
    /// Returns the ggml context that owns the tensors of `weights`.
    ggml_context* context() const;
    const drafter::Hyperparameters& hyperparameters() const;
    const drafter::Weights& weights() const;
    /// Returns a hash that identifies the weights, as Model::fingerprint does.
    uint64_t fingerprint() const;
    /// Returns the bytes of the weights on their device.
    size_t bytes() const;

   private:
    struct Loaded;
    explicit Drafter(std::unique_ptr<Loaded> loaded);
    std::unique_ptr<Loaded> loaded_;
};

}  // namespace ds4
