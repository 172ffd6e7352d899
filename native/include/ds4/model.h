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

/// As `ModelOptions::cpu_moe`: the routed experts of every layer.
constexpr int64_t kEveryLayer = -1;

struct ModelOptions {
    /// "auto" (what DS4_DEVICE names, else the first GPU, else the CPU), "cpu", "cuda:0", "hip:0", "metal", "vulkan:0",
    /// "rpc:HOST:PORT". Several, separated by commas, share the layers in order.
    std::string device = "auto";
    /// Layers of each device; their sum is the model's layers. Empty: all on the one device, or equal parts. With
    /// "auto" the devices are the GPUs in ggml's order.
    std::vector<int64_t> split = {};
    /// The CPU computes the routed experts of so many first layers, kEveryLayer for all; 0 for none. It changes nothing
    /// on the CPU.
    int64_t cpu_moe = 0;
    /// CPU threads of a session, at least 1. Nothing: the cores that affinity and quota leave to this process, and
    /// fewer while others use them where ds4's CPU kernels compute, whose bits do not depend on the number.
    std::optional<int> threads = std::nullopt;
    /// On the CPU: interleave the weights for the kernels, in memory of their own; else they are used as they lie.
    bool repack = true;
    /// Bytes of host memory that interleaved weights leave free for state and scratch.
    size_t reserve = 0;
};

/// Called with the fraction of the weights that is loaded, 0 to 1. May throw to stop the load.
using LoadProgress = std::function<void(double)>;

/// Immutable after loading; shared by its sessions, which may run in parallel.
class Model {
   public:
    /// Maps `path`, checks it, and loads the weights: used from the mapping where the device can address host memory,
    /// uploaded in chunks elsewhere. Throws FormatError, RequestError (device), BackendError.
    static std::shared_ptr<const Model> load(const std::string& path, const ModelOptions& options,
                                             const LoadProgress& progress = {});
    ~Model();

    const gguf::File& file() const;
    const model::Hyperparameters& hyperparameters() const;
    const weights::Weights& weights() const;
    const weights::DeviceMap& device_map() const;
    /// The device of the last layer, the head and a drafter.
    ggml_backend_dev_t device() const;
    /// Names of the devices that have layers, in order, separated by commas.
    std::string device_name() const;
    /// A description for people: the devices with how many layers each has, and what stays on the CPU.
    std::string describe_device_map() const;
    /// The connections to remote devices. A call that talks to such a device holds their lock; whatever may outlive the
    /// model there holds a copy.
    const backend::Connections& connections() const;
    /// The largest number of CPU threads that a session computes with.
    int threads() const;
    const machine::Topology& topology() const;
    /// Whether packed weights are spread over several NUMA nodes and each thread stays on a core.
    bool spread_over_nodes() const;
    /// Bytes of weights that were interleaved; 0 where they are used as they lie.
    size_t packed_bytes() const;

    /// Backends of one session by device index; the last is the CPU's, which also computes what others cannot.
    std::vector<ggml_backend_ptr> open_backends() const;
    /// The CPU threads of a new session. Each session's threads get other cores as far as there are others.
    backend::WorkerOptions workers() const;
    /// Identifies the weights: a hash of names, types, shapes and a sample of every tensor's bytes.
    uint64_t fingerprint() const;

   private:
    struct Loaded;
    explicit Model(std::unique_ptr<Loaded> loaded);
    std::unique_ptr<Loaded> loaded_;
};

/// Loads ggml's backend libraries from a directory (a portable build has them apart); harmless otherwise.
void load_backends(const std::string& directory);

}  // namespace ds4
