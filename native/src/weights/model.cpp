#include "ds4/model.h"

#include <atomic>
#include <optional>

#include "backend/device.h"
#include "backend/rpc_connection.h"
#include "backend/workers.h"
#include "machine/numa.h"
#include "weights/fingerprint.h"
#include "weights/loading.h"

namespace ds4 {
namespace {

/// Returns whether a tensor was packed at load. A file may have packed tensors, too, which are used from its mapping.
bool any_packed_at_load(ggml_context* ctx, const gguf::File& file) {
    for (ggml_tensor* t = ggml_get_first_tensor(ctx); t; t = ggml_get_next_tensor(ctx, t)) {
        if (kernels::packed_of(t) && t->data != file.find_tensor(t->name)->data) return true;
    }
    return false;
}

}  // namespace

struct Model::Loaded {
    std::optional<backend::ConnectionLock> closing;  // held while the members below give memory back
    std::shared_ptr<const gguf::File> file;
    model::Hyperparameters hp;
    backend::Connections connections;  // must outlive the memory there
    ggml_context_ptr ctx;
    weights::LoadedWeights memory;
    weights::Weights weights;
    machine::Topology topology;
    int threads = 1;
    std::unique_ptr<machine::CpuLoad> load;
    std::atomic<size_t> next_cpu{0};
    bool spread_over_nodes = false;

    ~Loaded() { closing.emplace(backend::ConnectionLock::for_destructor(connections.endpoints())); }
    void read(const std::string& path, const ModelOptions& options);
    void load_weights(const ModelOptions& options, const LoadProgress& progress);
};

/// Reads the file, describes its weights, and decides which device computes what.
void Model::Loaded::read(const std::string& path, const ModelOptions& options) {
    file = gguf::File::open(path);
    hp = model::read_hyperparameters(*file);
    ctx.reset(ggml_init({weights::context_size(hp), nullptr, true}));
    weights = weights::describe_weights(ctx.get(), *file, hp);
    weights::assign_devices(weights, {options.device, options.split, options.cpu_moe},
                            options.repack && weights::own_kernels());
    // With ggml's kernels a result depends on the number of threads, so the number must not change.
    if (!options.threads && weights.device_map.cpu_kernels.own()) load = std::make_unique<machine::CpuLoad>(topology);
    connections = backend::Connections(weights.device_map.devices);
}

void Model::Loaded::load_weights(const ModelOptions& options, const LoadProgress& progress) {
    const backend::ConnectionLock lock(connections.endpoints());
    const machine::ScopedInterleaving interleaving(topology);
    const auto device_of = [&](const ggml_tensor* t) {
        return weights.device_map.devices[weights::device_index_of(weights, t)];
    };
    memory = weights::load_weights(ctx.get(), *file, device_of, threads, weights::packable(weights, hp),
                                   options.reserve, progress);
    spread_over_nodes = interleaving.active() && any_packed_at_load(ctx.get(), *file);
    for (const ggml_backend_buffer_ptr& each : memory.buffers) {
        if (!ggml_backend_buffer_is_host(each.get())) continue;
        interleaving.keep(ggml_backend_buffer_get_base(each.get()), ggml_backend_buffer_get_size(each.get()));
    }
}

Model::Model(std::unique_ptr<Loaded> loaded) : loaded_(std::move(loaded)) {}
Model::~Model() = default;

std::shared_ptr<const Model> Model::load(const std::string& path, const ModelOptions& options,
                                         const LoadProgress& progress) {
    const int threads = options.threads.value_or(1);
    if (threads < 1) throw RequestError("threads is " + std::to_string(threads) + ", wanted at least 1");
    auto loaded = std::make_unique<Loaded>();
    loaded->topology = machine::read_topology(machine::allowed_cpus());
    loaded->threads = options.threads.value_or(machine::default_threads(loaded->topology));
    loaded->read(path, options);
    loaded->load_weights(options, progress);
    return std::shared_ptr<const Model>(new Model(std::move(loaded)));
}

const gguf::File& Model::file() const { return *loaded_->file; }
const model::Hyperparameters& Model::hyperparameters() const { return loaded_->hp; }
const weights::Weights& Model::weights() const { return loaded_->weights; }
const weights::DeviceMap& Model::device_map() const { return loaded_->weights.device_map; }
ggml_backend_dev_t Model::device() const { return device_map().devices[device_map().head]; }
std::string Model::device_name() const { return weights::device_names(device_map()); }
std::string Model::describe_device_map() const { return weights::describe(device_map()); }
const backend::Connections& Model::connections() const { return loaded_->connections; }
int Model::threads() const { return loaded_->threads; }
const machine::Topology& Model::topology() const { return loaded_->topology; }
bool Model::spread_over_nodes() const { return loaded_->spread_over_nodes; }

std::vector<ggml_backend_ptr> Model::open_backends() const {
    std::vector<ggml_backend_ptr> backends;
    for (ggml_backend_dev_t device : device_map().devices) {
        backends.emplace_back(ggml_backend_dev_init(device, nullptr));
        if (!backends.back()) throw BackendError("device " + backend::name_of(device) + " cannot be opened");
    }
    return backends;
}

backend::WorkerOptions Model::workers() const {
    backend::WorkerOptions workers{threads(), {}, loaded_->load.get()};
    // Pinned threads are fast or slow by chance unless the memory is spread over all nodes.
    const auto count = static_cast<size_t>(threads());
    if (spread_over_nodes()) {
        workers.cpus = machine::cpus_for_threads(topology(), count, loaded_->next_cpu.fetch_add(count));
    }
    if (workers.cpus.size() < count) workers.cpus.clear();
    return workers;
}

size_t Model::packed_bytes() const {
    size_t total = 0;
    for (const kernels::PackedTensor& each : loaded_->memory.packed) {
        total += each.bytes * static_cast<size_t>(each.count);
    }
    return total;
}

uint64_t Model::fingerprint() const { return weights::fingerprint(file()); }

}  // namespace ds4
