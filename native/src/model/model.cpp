#include "ds4/model.h"

#include "machine/numa.h"
#include "model/device.h"
#include "model/fingerprint.h"
#include "model/placement.h"
#include "model/remote.h"

namespace ds4 {
namespace {

/// Whether weights were packed into memory of our own; a file may have them packed, too.
bool any_packed_here(ggml_context* ctx, const gguf::File& file) {
    for (ggml_tensor* t = ggml_get_first_tensor(ctx); t; t = ggml_get_next_tensor(ctx, t)) {
        if (kernels::packed_of(t) && t->data != file.find_tensor(t->name)->data) return true;
    }
    return false;
}

}  // namespace

std::shared_ptr<const Model> Model::load(const std::string& path, const ModelOptions& options,
                                         const LoadProgress& progress) {
    const int threads = options.threads.value_or(1);
    if (threads < 1) throw RequestError("threads is " + std::to_string(threads) + ", wanted at least 1");
    std::shared_ptr<Model> m(new Model());
    m->topology_ = machine::read_topology(machine::allowed_cpus());
    m->threads_ = options.threads.value_or(machine::default_threads(m->topology_));
    m->file_ = gguf::File::open(path);
    m->hp_ = model::read_hyperparameters(*m->file_);
    m->ctx_.reset(ggml_init({model::weights_context_size(m->hp_), nullptr, true}));
    m->weights_ = model::describe_weights(m->ctx_.get(), *m->file_, m->hp_);
    model::decide_places(m->weights_, {options.device, options.split, options.cpu_moe},
                         options.repack && model::own_kernels());
    // Only our own kernels give the same bits with any number of threads.
    if (!options.threads && m->places().own_kernels) m->load_ = std::make_unique<machine::Load>(m->topology_);
    for (ggml_backend_dev_t device : m->places().devices) m->connections_.push_back(model::keep_connected(device));
    const std::vector<model::Packable> packable = model::packable(m->weights_, m->hp_);
    const machine::Interleaving interleaving(m->topology_);
    const auto device_of = [&](const ggml_tensor* t) { return m->places().devices[place_of(m->weights_, t)]; };
    auto [buffers, packed] =
        model::place_weights(m->ctx_.get(), *m->file_, device_of, m->threads_, packable, options.reserve, progress);
    m->buffers_ = std::move(buffers);
    m->packed_ = std::move(packed);
    m->spread_over_nodes_ = interleaving.active() && any_packed_here(m->ctx_.get(), *m->file_);
    for (const ggml_backend_buffer_ptr& each : m->buffers_) {
        if (!ggml_backend_buffer_is_host(each.get())) continue;
        interleaving.keep(ggml_backend_buffer_get_base(each.get()), ggml_backend_buffer_get_size(each.get()));
    }
    return m;
}

std::string Model::device_name() const { return model::device_names(places()); }
std::string Model::placement() const { return model::in_words(places()); }

std::vector<ggml_backend_ptr> Model::open_backends() const {
    std::vector<ggml_backend_ptr> backends;
    for (ggml_backend_dev_t device : places().devices) {
        backends.emplace_back(ggml_backend_dev_init(device, nullptr));
        if (!backends.back()) throw BackendError("device " + model::name_of(device) + " cannot be opened");
    }
    return backends;
}

model::WorkerOptions Model::workers() const {
    model::WorkerOptions workers{threads_, {}, load_.get()};
    // Threads that stay near memory that lies anywhere would be fast or slow by luck.
    const auto count = static_cast<size_t>(threads_);
    if (spread_over_nodes_) workers.cpus = machine::spread(topology_, count, next_cpu_.fetch_add(count));
    if (workers.cpus.size() < count) workers.cpus.clear();
    return workers;
}

size_t Model::packed_bytes() const {
    size_t total = 0;
    for (const kernels::PackedTensor& each : packed_) total += each.bytes * static_cast<size_t>(each.count);
    return total;
}

uint64_t Model::fingerprint() const { return model::fingerprint(*file_); }

}  // namespace ds4
