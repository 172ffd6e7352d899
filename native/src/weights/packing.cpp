#include "weights/packing.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>

#include "cpu/packing.h"
#include "gguf/tensors.h"

namespace ds4::weights {
namespace {

void add(std::vector<Packable>& out, std::initializer_list<ggml_tensor*> tensors) {
    for (ggml_tensor* t : tensors) {
        if (t) out.push_back({t});
    }
}

/// Packs the rows of one tile, after widening them to F32 when the format is not that of their type.
void pack_tile(ggml_type type, const void* rows, int64_t count, int64_t columns, kernels::Format format, void* out) {
    if (kernels::format_of(type) == format) {
        kernels::pack_tile(format, rows, ggml_row_size(type, columns), count, columns, out);
        return;
    }
    std::vector<float> widened(static_cast<size_t>(count * columns));
    ggml_get_type_traits(type)->to_float(rows, widened.data(), count * columns);
    kernels::pack_tile(format, widened.data(), static_cast<size_t>(columns) * sizeof(float), count, columns, out);
}

void add_experts(std::vector<Packable>& out, const Layer& layer) {
    for (ggml_tensor* experts : {layer.moe.gate, layer.moe.up, layer.moe.down})
        out.push_back({experts, experts->ne[2]});
}

[[noreturn]] void fail(const gguf::File& file, const gguf::Tensor& tensor, const std::string& what) {
    throw file.error("tensor '" + tensor.name + "' is packed, " + what +
                     "; pack the original again with deepseek4-quantize --pack");
}

}  // namespace

void add_packable(std::vector<Packable>& out, const Layer& layer, const model::Hyperparameters& hp) {
    const Attention& a = layer.attention;
    add(out, {layer.hc_attention.fn, layer.hc_ffn.fn, a.query_a, a.query_b, a.kv, a.output_b});
    out.push_back({a.output_a, hp.output_groups});
    add(out, {a.compressor.kv, a.compressor.gate, a.indexer.query, a.indexer.proj, a.indexer.compressor.kv,
              a.indexer.compressor.gate});
    add_experts(out, layer);
    add(out, {layer.moe.router, layer.moe.shared_gate, layer.moe.shared_up, layer.moe.shared_down});
}

std::vector<Packable> packable(const Weights& weights, const model::Hyperparameters& hp) {
    std::vector<Packable> out;
    const DeviceMap& device_map = weights.device_map;
    for (int64_t i = 0; i < hp.layers; i++) {
        if (device_map.uses_own_kernels(device_map.layers[i]))
            add_packable(out, weights.layers[i], hp);
        else if (device_map.cpu_kernels.own() && device_map.experts_on_cpu(i))
            add_experts(out, weights.layers[i]);
    }
    if (!weights.head_uses_own_kernels()) return out;
    add(out, {weights.hc_head.fn});
    if (weights.output != weights.embedding) add(out, {weights.output});  // rows of an embedding are looked up
    return out;
}

std::optional<kernels::PackedTensor> packed_shape(const Packable& packable) {
    const ggml_tensor* t = packable.tensor;
    return kernels::packed_shape(t->type, t->ne[0], ggml_nrows(t) / packable.count, packable.count);
}

void require_same_packing(const gguf::File& file, const std::vector<Packable>& packable) {
    std::unordered_map<std::string_view, const Packable*> known;
    for (const Packable& each : packable) known.emplace(each.tensor->name, &each);
    for (const gguf::Tensor& t : file.tensors()) {
        if (t.packed == 0) continue;
        const auto found = known.find(t.name);
        if (found == known.end()) fail(file, t, "which only rows can be used of");
        const Packable& expected = *found->second;
        if (t.packed != expected.count)
            fail(file, t, "as " + std::to_string(t.packed) + " matrices, wanted " + std::to_string(expected.count));
        if (t.type != expected.tensor->type)
            fail(file, t, "as " + gguf::type_name(t.type) + ", wanted " + gguf::type_name(expected.tensor->type));
    }
}

void pack_rows(ggml_type type, const void* rows, int64_t count, int64_t columns, ggml_type packed, void* out) {
    const kernels::Format format = *kernels::format_of(packed);
    const size_t stride = ggml_row_size(type, columns), tile = kernels::tile_bytes(format, columns);
    for (int64_t row = 0; row < count; row += kernels::kTile) {
        pack_tile(type, static_cast<const char*>(rows) + row * stride, std::min(kernels::kTile, count - row), columns,
                  format, static_cast<char*>(out) + row / kernels::kTile * tile);
    }
}

void pack_tiles(const gguf::Tensor& source, const ggml_tensor* tensor, int64_t first, int64_t last) {
    const kernels::PackedTensor& packed = *kernels::packed_of(tensor);
    const int64_t tiles = kernels::tiles(packed.rows);
    const size_t stride = ggml_row_size(source.type, packed.columns), tile = packed.bytes / tiles;
    for (int64_t i = first; i < last; i++) {
        const int64_t row = i % tiles * kernels::kTile, count = std::min(kernels::kTile, packed.rows - row);
        const void* from = static_cast<const char*>(source.data) + (i / tiles * packed.rows + row) * stride;
        void* to = static_cast<char*>(tensor->data) + i / tiles * packed.bytes + i % tiles * tile;
        pack_tile(source.type, from, count, packed.columns, packed.format, to);
    }
}

}  // namespace ds4::weights
