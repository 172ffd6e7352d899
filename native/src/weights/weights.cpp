#include "weights/weights.h"

#include <cinttypes>
#include <cstdio>

#include "backend/device.h"
#include "weights/describer.h"

namespace ds4::weights {

Weights describe_weights(ggml_context* ctx, const gguf::File& file, const model::Hyperparameters& hp) {
    const Describer in(ctx, file);
    Weights out{};
    out.embedding = in.matrix("token_embd.weight", {hp.hidden, hp.vocab});
    // Without an output matrix in the file, the head is tied to the embedding.
    out.output = in.has("output.weight") ? in.matrix("output.weight", {hp.hidden, hp.vocab}) : out.embedding;
    out.output_norm = in.f32_vector("output_norm.weight", {hp.hidden});
    out.hc_head = in.hyper_connection("output_hc_", hp.streams * hp.hidden, hp.streams, 1);
    for (int64_t layer = 0; layer < hp.layers; ++layer) {
        out.layers.push_back(describe_layer(in, hp, layer, "blk." + std::to_string(layer) + "."));
    }
    return out;
}

void assign_devices(Weights& weights, const DeviceOptions& options, bool own_kernels) {
    DeviceMap& device_map = weights.device_map;
    device_map = make_device_map(options, std::ssize(weights.layers));
    device_map.cpu_kernels = kernels::KernelChoice::of_cpu(own_kernels);
    const ggml_tensor* rows = weights.embedding;
    if (weights.output == rows) device_map.embedding = device_map.head;
    ggml_backend_dev_t device = device_map.devices[device_map.embedding];
    if (!backend::supports_get_rows(device, rows->type, rows->ne[0], rows->ne[1]))
        device_map.embedding = device_map.cpu();
}

int device_index_of(const Weights& weights, const ggml_tensor* tensor) {
    const DeviceMap& device_map = weights.device_map;
    if (tensor == weights.embedding) return device_map.embedding;
    int64_t layer = -1;
    if (std::sscanf(tensor->name, "blk.%" SCNd64 ".", &layer) != 1) return device_map.head;
    const Moe& moe = weights.layers[layer].moe;
    const bool routed = tensor == moe.gate || tensor == moe.up || tensor == moe.down;
    return routed && layer < device_map.host_experts ? device_map.cpu() : device_map.layers[layer];
}

size_t context_size(const model::Hyperparameters& hp) {
    // Every member of these structs is one pointer to a tensor.
    constexpr size_t layer = sizeof(Layer) / sizeof(ggml_tensor*);
    constexpr size_t top = 3 + sizeof(HyperConnection) / sizeof(ggml_tensor*);
    return ggml_tensor_overhead() * (top + layer * static_cast<size_t>(hp.layers));
}

}  // namespace ds4::weights
