#pragma once
// A loaded target: hyperparameters, weights in place, and the device they live on.

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "cpu/packed_tensor.h"
#include "ggml-cpp.h"
#include "gguf/gguf.h"
#include "model/hyperparameters.h"
#include "model/weights.h"

namespace ds4 {

struct ModelOptions {
    /// "auto" (the first GPU, else the CPU), "cpu", "cuda:0", "hip:0", "metal", "vulkan:0".
    std::string device = "auto";
    /// CPU threads of a session; must be at least 1.
    int threads = 1;
    /// On the CPU: interleave the weights for the kernels, in memory of their own; else they are used as they lie.
    bool repack = true;
};

/// Fraction of the weights in place, 0 to 1. May throw to stop the load.
using LoadProgress = std::function<void(double)>;

/// Immutable after loading; shared by its sessions, which may run in parallel.
class Model {
   public:
    /// Maps `path`, checks it, and puts the weights in place: used from the mapping where the device can address
    /// host memory, uploaded in chunks elsewhere. Throws FormatError, RequestError (device), BackendError.
    static std::shared_ptr<const Model> load(const std::string& path, const ModelOptions& options,
                                             const LoadProgress& progress = {});

    const gguf::File& file() const { return *file_; }
    const model::Hyperparameters& hyperparameters() const { return hp_; }
    const model::Weights& weights() const { return weights_; }
    ggml_backend_dev_t device() const { return device_; }
    std::string device_name() const;
    int threads() const { return threads_; }
    /// Bytes of weights that were interleaved; 0 where they are used as they lie.
    size_t packed_bytes() const;

    /// Backends of one session: the device's, then the CPU's for what the device cannot do.
    std::vector<ggml_backend_ptr> open_backends() const;
    /// Identifies the weights: names, types, shapes and a sample of every tensor's bytes.
    uint64_t fingerprint() const;

   private:
    Model() = default;
    std::shared_ptr<const gguf::File> file_;
    model::Hyperparameters hp_;
    ggml_context_ptr ctx_;
    std::vector<ggml_backend_buffer_ptr> buffers_;
    std::deque<kernels::PackedTensor> packed_;
    model::Weights weights_;
    ggml_backend_dev_t device_ = nullptr;
    int threads_ = 1;
};

/// Bytes needed to run a file on the CPU at a context length.
struct MemoryNeed {
    size_t weights, kv, scratch;
};

/// Throws FormatError when the file is not a target that can run.
MemoryNeed memory_needed(std::shared_ptr<const gguf::File> file, int64_t context, ggml_type kv_type);

/// Loads ggml's backend libraries from a directory (a portable build has them apart); harmless otherwise.
void load_backends(const std::string& directory);

}  // namespace ds4
