#include "model/weights.h"

#include "model/describer.h"

namespace ds4::model {

Weights describe_weights(ggml_context* ctx, const gguf::File& file, const Hyperparameters& hp) {
    const Describer in(ctx, file);
    Weights out{};
    out.embedding = in.matrix("token_embd.weight", {hp.hidden, hp.vocab});
    // Without a matrix of its own, the head is tied to the embedding.
    out.output = in.has("output.weight") ? in.matrix("output.weight", {hp.hidden, hp.vocab}) : out.embedding;
    out.output_norm = in.wide("output_norm.weight", {hp.hidden});
    out.hc_head = in.hyper_connection("output_hc_", hp.streams * hp.hidden, hp.streams, 1);
    for (int64_t layer = 0; layer < hp.layers; ++layer) {
        out.layers.push_back(describe_layer(in, hp, layer, "blk." + std::to_string(layer) + "."));
    }
    return out;
}

size_t weights_context_size(const Hyperparameters& hp) {
    // Every member of these structs is one pointer to a tensor.
    constexpr size_t layer = sizeof(Layer) / sizeof(ggml_tensor*);
    constexpr size_t top = 3 + sizeof(HyperConnection) / sizeof(ggml_tensor*);
    return ggml_tensor_overhead() * (top + layer * static_cast<size_t>(hp.layers));
}

}  // namespace ds4::model
