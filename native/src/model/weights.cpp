#include "model/weights.h"

#include <cinttypes>
#include <cstdio>

#include "model/describer.h"
#include "model/device.h"

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

void decide_places(Weights& weights, const PlacesWanted& wanted, bool own_kernels) {
    Places& places = weights.places;
    places = find_places(wanted, std::ssize(weights.layers));
    places.own_kernels = own_kernels;
    weights.own_kernels = places.own(places.head);
    const ggml_tensor* rows = weights.embedding;
    if (weights.output == rows) places.embedding = places.head;
    ggml_backend_dev_t device = places.devices[places.embedding];
    if (!looks_up_rows(device, rows->type, rows->ne[0], rows->ne[1])) places.embedding = places.host();
}

int place_of(const Weights& weights, const ggml_tensor* tensor) {
    const Places& places = weights.places;
    if (tensor == weights.embedding) return places.embedding;
    int64_t layer = -1;
    if (std::sscanf(tensor->name, "blk.%" SCNd64 ".", &layer) != 1) return places.head;
    const Moe& moe = weights.layers[layer].moe;
    const bool routed = tensor == moe.gate || tensor == moe.up || tensor == moe.down;
    return routed && layer < places.host_experts ? places.host() : places.layers[layer];
}

size_t weights_context_size(const Hyperparameters& hp) {
    // Every member of these structs is one pointer to a tensor.
    constexpr size_t layer = sizeof(Layer) / sizeof(ggml_tensor*);
    constexpr size_t top = 3 + sizeof(HyperConnection) / sizeof(ggml_tensor*);
    return ggml_tensor_overhead() * (top + layer * static_cast<size_t>(hp.layers));
}

}  // namespace ds4::model
