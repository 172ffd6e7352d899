#include "drafter/weights.h"

#include <set>

#include "weights/describer.h"

namespace ds4::drafter {

namespace {

void describe_heads(const weights::Describer& in, const Names& names, const Hyperparameters& hp, Weights& out) {
    const int64_t hidden = hp.stages.hidden;
    out.fusion = in.matrix(names.fusion, {std::ssize(hp.taps) * hidden, hidden});
    out.fusion_norm = in.f32_vector(names.fusion_norm, {hidden});
    out.output_norm = in.f32_vector(names.output_norm, {hidden});
    out.hc_head = in.hyper_connection(names.hc_head, hp.stages.streams * hidden, hp.stages.streams, 1);
    if (hp.rank == 0) return;
    out.markov_embedding = in.matrix(names.markov_embedding, {hp.rank, hp.stages.vocab});
    out.markov_output = in.matrix(names.markov_output, {hp.rank, hp.stages.vocab});
}

void describe_confidence(const weights::Describer& in, const Names& names, const Hyperparameters& hp, Weights& out) {
    if (!hp.confidence) return;
    out.confidence = in.f32_matrix(names.confidence, {hp.stages.hidden + (hp.confidence_markov ? hp.rank : 0), 1});
    in.require_finite(names.confidence);
    if (in.has(names.confidence_bias)) out.confidence_bias = in.f32_vector(names.confidence_bias, {1});
}

/// Throws FormatError for a tensor that no role uses: the drafter would compute something other than its maker's.
void refuse_unknown(ggml_context* ctx, const gguf::File& file, const Names& names) {
    // Some converters add copies of these two tensors of the target.
    std::set<std::string> known{"token_embd.weight", "output.weight"};
    for (ggml_tensor* t = ggml_get_first_tensor(ctx); t; t = ggml_get_next_tensor(ctx, t)) known.insert(t->name);
    for (const gguf::Tensor& tensor : file.tensors()) {
        if (known.contains(tensor.name)) continue;
        throw file.error("tensor '" + tensor.name + "' is unknown, wanted only those of a DSpark drafter (" +
                         contract_name(names.contract) + ", " + std::to_string(names.stages) + " stages)");
    }
}

}  // namespace

Weights describe_weights(ggml_context* ctx, const gguf::File& file, const Names& names, const Hyperparameters& hp) {
    const weights::Describer in(ctx, file);
    Weights out{};
    describe_heads(in, names, hp, out);
    describe_confidence(in, names, hp, out);
    for (int64_t i = 0; i < hp.stages.layers; ++i)
        out.stages.push_back(weights::describe_layer(in, hp.stages, i, names.stage(i)));
    refuse_unknown(ctx, file, names);
    return out;
}

std::vector<weights::Packable> packable(const Weights& weights, const model::Hyperparameters& target) {
    std::vector<weights::Packable> out{{weights.fusion}, {weights.hc_head.fn}};
    for (const weights::Layer& stage : weights.stages) weights::add_packable(out, stage, target);
    return out;
}

size_t context_size(const Hyperparameters& hp) {
    // Every member of these structs is one pointer to a tensor.
    constexpr size_t layer = sizeof(weights::Layer) / sizeof(ggml_tensor*);
    constexpr size_t top = 7 + sizeof(weights::HyperConnection) / sizeof(ggml_tensor*);
    return ggml_tensor_overhead() * (top + layer * static_cast<size_t>(hp.stages.layers));
}

}  // namespace ds4::drafter
