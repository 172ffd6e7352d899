#pragma once
// A loaded target: hyperparameters, weights in place, and the device they live on.

#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cpu/packed_tensor.h"
#include "ggml-cpp.h"
#include "gguf/gguf.h"
#include "machine/topology.h"
#include "model/hyperparameters.h"
#include "model/weights.h"
#include "model/workers.h"

namespace ds4 {

struct ModelOptions {
    /// "auto" (what DS4_DEVICE names, else the first GPU, else the CPU), "cpu", "cuda:0", "hip:0", "metal", "vulkan:0",
    /// "rpc:HOST:PORT". Several after commas share the layers out in order.
    std::string device = "auto";
    /// Layers of each device; together the model's. Empty: all on the one device, or equal parts. With "auto" the
    /// devices are the GPUs in ggml's order.
    std::vector<int64_t> split = {};
    /// Routed experts of so many first layers stay on the CPU, model::kEveryLayer for all; 0 for none. On the CPU it
    /// changes nothing.
    int64_t cpu_moe = 0;
    /// CPU threads of a session, at least 1. Nothing: the cores that affinity and quota leave to this process, and
    /// fewer while others use them where the CPU's own kernels compute, whose bits do not depend on it.
    std::optional<int> threads = std::nullopt;
    /// On the CPU: interleave the weights for the kernels, in memory of their own; else they are used as they lie.
    bool repack = true;
    /// Bytes of host memory that interleaved weights are to leave to others: state and scratch.
    size_t reserve = 0;
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
    const model::Places& places() const { return weights_.places; }
    /// The device of the last layer and the head, and of a drafter.
    ggml_backend_dev_t device() const { return places().devices[places().head]; }
    /// The devices that have layers, in order, with commas.
    std::string device_name() const;
    /// The same with the layers of each, and what stays on the CPU.
    std::string placement() const;
    /// The connections to remote devices, for whatever may outlive the model there.
    const std::vector<std::shared_ptr<void>>& connections() const { return connections_; }
    /// The most that a session computes with.
    int threads() const { return threads_; }
    const machine::Topology& topology() const { return topology_; }
    /// Whether packed weights lie on several NUMA nodes in turn and each thread stays on a core.
    bool spread_over_nodes() const { return spread_over_nodes_; }
    /// Bytes of weights that were interleaved; 0 where they are used as they lie.
    size_t packed_bytes() const;

    /// Backends of one session by place: the CPU's, for what others cannot do, is the last.
    std::vector<ggml_backend_ptr> open_backends() const;
    /// The threads that the CPU's computes with. Each session's stay on other cores, as far as there are others.
    model::WorkerOptions workers() const;
    /// Identifies the weights: names, types, shapes and a sample of every tensor's bytes.
    uint64_t fingerprint() const;

   private:
    Model() = default;
    std::shared_ptr<const gguf::File> file_;
    model::Hyperparameters hp_;
    std::vector<std::shared_ptr<void>> connections_;  // to remote devices; outlive what lies there
    ggml_context_ptr ctx_;
    std::vector<ggml_backend_buffer_ptr> buffers_;
    std::deque<kernels::PackedTensor> packed_;
    model::Weights weights_;
    machine::Topology topology_;
    int threads_ = 1;
    std::unique_ptr<machine::Load> load_;
    mutable std::atomic<size_t> next_cpu_{0};
    bool spread_over_nodes_ = false;
};

/// Loads ggml's backend libraries from a directory (a portable build has them apart); harmless otherwise.
void load_backends(const std::string& directory);

}  // namespace ds4
