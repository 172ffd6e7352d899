#pragma once
// A loaded target: hyperparameters, weights, and the devices that compute with them.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ds4/errors.h"
#include "ggml-cpp.h"

namespace ds4 {

namespace gguf {
class File;
}
namespace model {
struct Hyperparameters;
}
namespace weights {
struct Weights;
struct DeviceMap;
}  // namespace weights
namespace backend {
class Connections;
struct WorkerOptions;
}  // namespace backend
namespace machine {
struct Topology;
}

/// A value of `ModelOptions::cpu_moe`: the CPU computes the routed experts of every layer.
constexpr int64_t kEveryLayer = -1;

/// Options of Model::load: the distribution of the model over devices, and the threads and kernels of its sessions.
struct ModelOptions {
    /// The device by name: "cpu", "cuda:0", "hip:0", "metal", "vulkan:0" or "rpc:HOST:PORT". "auto" is the device that
    /// DS4_DEVICE names, else the first GPU, else the CPU. Several names, separated by commas, share the layers in
    /// order.
    std::string device = "auto";
    /// The number of layers on each device; the sum must be the model's number of layers. When it is empty, all layers
    /// are on the one device, or the devices get equal parts. With "auto" the devices are the GPUs in ggml's order.
    std::vector<int64_t> split = {};
    /// The number of first layers whose routed experts the CPU computes: 0 for none, kEveryLayer for all. Changes
    /// nothing for layers that are on the CPU anyway.
    int64_t cpu_moe = 0;
    /// The CPU threads of a session, at least 1. Without a value it is the number of cores that affinity and cgroup
    /// quota leave to this process. Where ds4's CPU kernels compute, a session then uses fewer threads while other
    /// processes use the cores; the bits of a result do not depend on the number of threads.
    std::optional<int> threads = std::nullopt;
    /// Whether the CPU's weights are packed (interleaved) for ds4's kernels, in memory of their own. Otherwise the CPU
    /// uses them from the file's mapping.
    bool repack = true;
    /// The host memory, in bytes, that packing must leave free for state and compute buffers. When less would be left,
    /// nothing is packed.
    size_t reserve = 0;
};

/// Receives the fraction of the weights that is loaded, from 0 to 1. May throw to stop the load.
using LoadProgress = std::function<void(double)>;

/// A loaded target. It is immutable and shared by its sessions, which may run in parallel.
class Model {
   public:
    /// Maps the file (any shard of a split model), checks it, and loads the weights: used from the mapping where the
    /// device can address host memory, uploaded in chunks elsewhere. Throws FormatError for the file, RequestError for
    /// options that do not fit the model or the machine, and BackendError for a device that fails or has no room.
    static std::shared_ptr<const Model> load(const std::string& path, const ModelOptions& options,
                                             const LoadProgress& progress = {});
    ~Model();

    const gguf::File& file() const;
    const model::Hyperparameters& hyperparameters() const;
    const weights::Weights& weights() const;
    const weights::DeviceMap& device_map() const;
    /// Returns the device of the last layer, which also has the head and the drafter.
    ggml_backend_dev_t device() const;
    /// Returns the names of the devices that have layers, in order, separated by commas.
    std::string device_name() const;
    /// Describes the device map for people: the devices with the number of layers of each, and the experts that stay on
    /// the CPU.
    std::string describe_device_map() const;
    /// Returns the connections to remote devices. A call that talks to such a device holds their lock; whatever may
    /// outlive the model there holds a copy.
    const backend::Connections& connections() const;
    /// Returns the largest number of CPU threads that a session computes with.
    int threads() const;
    const machine::Topology& topology() const;
    /// Returns whether packed weights are spread over several NUMA nodes. If so, each thread stays on one core.
    bool spread_over_nodes() const;
    /// Returns the bytes of weights that are packed for ds4's CPU kernels; 0 when none is.
    size_t packed_bytes() const;

    /// Opens the backends of one session, one for each device index. The last is the CPU's, which also runs the
    /// operations that the others cannot.
    std::vector<ggml_backend_ptr> open_backends() const;
    /// Returns the options for the CPU threads of a new session. Sessions get different cores as long as there are any
    /// left.
    backend::WorkerOptions workers() const;
    /// Returns a hash that identifies the weights: of the name, type, shape and first bytes of every tensor.
    uint64_t fingerprint() const;

   private:
    struct Loaded;
    explicit Model(std::unique_ptr<Loaded> loaded);
    std::unique_ptr<Loaded> loaded_;
};

/// Loads ggml's backend libraries from `directory`. A portable build needs this before anything else; other builds have
/// the backends linked in, and the call does no harm.
void load_backends(const std::string& directory);

}  // namespace ds4
