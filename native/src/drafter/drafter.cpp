#include "ds4/drafter.h"

#include <optional>

#include "backend/rpc_connection.h"
#include "drafter/description.h"
#include "machine/numa.h"
#include "weights/fingerprint.h"
#include "weights/loading.h"

namespace ds4 {

struct Drafter::Loaded {
    std::optional<backend::ConnectionLock> closing;  // held while the members below give memory back
    backend::Connections connections;                // must outlive the memory there
    std::shared_ptr<const gguf::File> file;          // null for a drafter without data
    drafter::Description description;
    weights::LoadedWeights memory;

    ~Loaded() { closing.emplace(backend::ConnectionLock::for_destructor(connections.endpoints())); }
};

Drafter::Drafter(std::unique_ptr<Loaded> loaded) : loaded_(std::move(loaded)) {}
Drafter::~Drafter() = default;

std::shared_ptr<const Drafter> Drafter::load(const std::string& path, const Model& target,
                                             const LoadProgress& progress) {
    auto loaded = std::make_unique<Loaded>();
    loaded->file = gguf::File::open(path);
    loaded->connections = target.connections();
    loaded->description = drafter::describe(*loaded->file, &target.hyperparameters());
    std::vector<weights::Packable> packable;
    if (target.weights().head_uses_own_kernels()) {
        packable = drafter::packable(loaded->description.weights, target.hyperparameters());
    }
    const backend::ConnectionLock lock(loaded->connections.endpoints());
    const machine::ScopedInterleaving interleaving(target.topology());
    loaded->memory = weights::load_weights(
        loaded->description.ctx.get(), *loaded->file, [&](const ggml_tensor*) { return target.device(); },
        target.threads(), packable, 0, progress);
    return std::shared_ptr<const Drafter>(new Drafter(std::move(loaded)));
}

std::shared_ptr<const Drafter> Drafter::describe(const gguf::File& file, const model::Hyperparameters& target) {
    auto loaded = std::make_unique<Loaded>();
    loaded->description = drafter::describe(file, &target);
    return std::shared_ptr<const Drafter>(new Drafter(std::move(loaded)));
}

const gguf::File& Drafter::file() const { return *loaded_->file; }
ggml_context* Drafter::context() const { return loaded_->description.ctx.get(); }
const drafter::Hyperparameters& Drafter::hyperparameters() const { return loaded_->description.hp; }
const drafter::Weights& Drafter::weights() const { return loaded_->description.weights; }
uint64_t Drafter::fingerprint() const { return weights::fingerprint(*loaded_->file); }

size_t Drafter::bytes() const {
    size_t total = 0;
    for (ggml_tensor* t = ggml_get_first_tensor(context()); t; t = ggml_get_next_tensor(context(), t))
        total += ggml_nbytes(t);
    return total;
}

}  // namespace ds4
