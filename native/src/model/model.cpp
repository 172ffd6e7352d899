#include "ds4/model.h"

#include "model/device.h"
#include "model/fingerprint.h"
#include "model/placement.h"

namespace ds4 {

std::shared_ptr<const Model> Model::load(const std::string& path, const ModelOptions& options,
                                         const LoadProgress& progress) {
    if (options.threads < 1) {
        throw RequestError("threads is " + std::to_string(options.threads) + ", wanted at least 1");
    }
    std::shared_ptr<Model> m(new Model());
    m->device_ = model::find_device(options.device);
    m->threads_ = options.threads;
    m->file_ = gguf::File::open(path);
    m->hp_ = model::read_hyperparameters(*m->file_);
    m->ctx_.reset(ggml_init({model::weights_context_size(m->hp_), nullptr, true}));
    m->weights_ = model::describe_weights(m->ctx_.get(), *m->file_, m->hp_);
    // The embedding is only ever gathered from: a few rows a forward are not worth device memory.
    m->weights_.own_kernels = options.repack && model::own_kernels(m->device_);
    const std::vector<model::Packable> packable = model::packable(m->weights_, m->hp_);
    auto [buffers, packed] = model::place_weights(m->ctx_.get(), *m->file_, m->device_, m->threads_,
                                                  {m->weights_.embedding}, packable, progress);
    m->buffers_ = std::move(buffers);
    m->packed_ = std::move(packed);
    return m;
}

std::string Model::device_name() const { return ggml_backend_dev_name(device_); }

std::vector<ggml_backend_ptr> Model::open_backends() const {
    std::vector<ggml_backend_ptr> backends;
    ggml_backend_dev_t cpu = model::cpu_device();
    if (device_ != cpu) backends.emplace_back(ggml_backend_dev_init(device_, nullptr));
    backends.emplace_back(ggml_backend_dev_init(cpu, nullptr));
    for (const ggml_backend_ptr& b : backends) {
        if (!b) throw BackendError("device " + device_name() + " cannot be opened");
    }
    model::set_threads(backends.back().get(), threads_);
    return backends;
}

size_t Model::packed_bytes() const {
    size_t total = 0;
    for (const kernels::PackedTensor& each : packed_) total += each.bytes * static_cast<size_t>(each.count);
    return total;
}

uint64_t Model::fingerprint() const { return model::fingerprint(*file_); }

}  // namespace ds4
