#include "model/packing.h"

#include <algorithm>

#include "cpu/packing.h"

namespace ds4::model {
namespace {

void add(std::vector<Packable>& out, std::initializer_list<ggml_tensor*> tensors) {
    for (ggml_tensor* t : tensors) {
        if (t) out.push_back({t});
    }
}

}  // namespace

void add_packable(std::vector<Packable>& out, const Layer& layer, const Hyperparameters& hp) {
    const Attention& a = layer.attention;
    add(out, {layer.hc_attention.fn, layer.hc_ffn.fn, a.query_a, a.query_b, a.kv, a.output_b});
    out.push_back({a.output_a, hp.output_groups});
    add(out, {a.compressor.kv, a.compressor.gate, a.indexer.query, a.indexer.proj, a.indexer.compressor.kv,
              a.indexer.compressor.gate});
    for (ggml_tensor* experts : {layer.moe.gate, layer.moe.up, layer.moe.down})
        out.push_back({experts, experts->ne[2]});
    add(out, {layer.moe.router, layer.moe.shared_gate, layer.moe.shared_up, layer.moe.shared_down});
}

std::vector<Packable> packable(const Weights& weights, const Hyperparameters& hp) {
    std::vector<Packable> out;
    if (!weights.own_kernels) return out;
    for (const Layer& layer : weights.layers) add_packable(out, layer, hp);
    add(out, {weights.hc_head.fn});
    if (weights.output != weights.embedding) add(out, {weights.output});  // rows of an embedding are looked up
    return out;
}

std::optional<kernels::PackedTensor> packed_shape(const Packable& wanted) {
    const ggml_tensor* t = wanted.tensor;
    const auto format = kernels::format_of(t->type);
    if (!format || (kernels::takes_quantised(*format) && t->ne[0] % 32)) return std::nullopt;
    const int64_t rows = ggml_nrows(t) / wanted.count;
    return kernels::PackedTensor{*format, t->ne[0], rows, wanted.count, kernels::packed_bytes(*format, t->ne[0], rows)};
}

void pack_tiles(const gguf::Tensor& source, const ggml_tensor* tensor, int64_t first, int64_t last) {
    const kernels::PackedTensor& packed = *kernels::packed_of(tensor);
    const int64_t tiles = kernels::tiles(packed.rows);
    const size_t stride = ggml_row_size(source.type, packed.columns), tile = packed.bytes / tiles;
    std::vector<float> widened;
    for (int64_t i = first; i < last; i++) {
        const int64_t row = i % tiles * kernels::kTile, count = std::min(kernels::kTile, packed.rows - row);
        const void* from = static_cast<const char*>(source.data) + (i / tiles * packed.rows + row) * stride;
        void* to = static_cast<char*>(tensor->data) + i / tiles * packed.bytes + i % tiles * tile;
        if (source.type == tensor->type) {
            kernels::pack_tile(packed.format, from, stride, count, packed.columns, to);
            continue;
        }
        widened.resize(count * packed.columns);
        ggml_get_type_traits(source.type)->to_float(from, widened.data(), count * packed.columns);
        kernels::pack_tile(packed.format, widened.data(), packed.columns * sizeof(float), count, packed.columns, to);
    }
}

}  // namespace ds4::model
