#include "drafter/description.h"

namespace ds4::drafter {

Description describe(const gguf::File& file, const model::Hyperparameters* target) {
    const Names names = recognise(file);
    Description out;
    out.hp = read_hyperparameters(file, names, target ? *target : model::Hyperparameters{});
    out.ctx.reset(ggml_init({context_size(out.hp), nullptr, true}));
    out.weights = describe_weights(out.ctx.get(), file, names, out.hp);
    if (target) require_pair(file, out.hp, *target);
    return out;
}

}  // namespace ds4::drafter
