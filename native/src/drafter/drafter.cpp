#include "ds4/drafter.h"

#include "drafter/description.h"
#include "machine/numa.h"
#include "model/fingerprint.h"
#include "model/placement.h"

namespace ds4 {

std::shared_ptr<const Drafter> Drafter::load(const std::string& path, const Model& target,
                                             const LoadProgress& progress) {
    std::shared_ptr<Drafter> d(new Drafter());
    d->file_ = gguf::File::open(path);
    d->connections_ = target.connections();
    auto [hp, ctx, weights] = drafter::describe(*d->file_, &target.hyperparameters());
    d->hp_ = std::move(hp);
    d->ctx_ = std::move(ctx);
    d->weights_ = std::move(weights);
    std::vector<model::Packable> packable;
    if (target.weights().own_kernels) packable = drafter::packable(d->weights_, target.hyperparameters());
    const machine::Interleaving interleaving(target.topology());
    auto [buffers, packed] = model::place_weights(
        d->ctx_.get(), *d->file_, [&](const ggml_tensor*) { return target.device(); }, target.threads(), packable, 0,
        progress);
    d->buffers_ = std::move(buffers);
    d->packed_ = std::move(packed);
    return d;
}

std::shared_ptr<const Drafter> Drafter::describe(const gguf::File& file, const model::Hyperparameters& target) {
    std::shared_ptr<Drafter> d(new Drafter());
    auto [hp, ctx, weights] = drafter::describe(file, &target);
    d->hp_ = std::move(hp);
    d->ctx_ = std::move(ctx);
    d->weights_ = std::move(weights);
    return d;
}

size_t Drafter::bytes() const {
    size_t total = 0;
    for (ggml_tensor* t = ggml_get_first_tensor(ctx_.get()); t; t = ggml_get_next_tensor(ctx_.get(), t))
        total += ggml_nbytes(t);
    return total;
}

uint64_t Drafter::fingerprint() const { return model::fingerprint(*file_); }

}  // namespace ds4
