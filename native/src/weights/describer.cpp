#include "weights/describer.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "gguf/tensors.h"

namespace ds4::weights {

namespace {

/// Returns whether ggml can multiply by weights of this type, or widen them.
bool is_weight_type(ggml_type type) { return type == GGML_TYPE_F32 || ggml_get_type_traits(type)->to_float != nullptr; }

bool is_float_type(ggml_type type) { return type == GGML_TYPE_F32 || type == GGML_TYPE_F16 || type == GGML_TYPE_BF16; }

std::string show(const Shape& shape) {
    std::string out;
    for (const int64_t size : shape) out += (out.empty() ? "(" : ", ") + std::to_string(size);
    return out + ")";
}

std::vector<float> widened(const gguf::Tensor& found) {
    std::vector<float> out(found.nbytes / ggml_type_size(found.type) * ggml_blck_size(found.type));
    if (found.type == GGML_TYPE_F32) {
        std::memcpy(out.data(), found.data, found.nbytes);
    } else {
        ggml_get_type_traits(found.type)->to_float(found.data, out.data(), static_cast<int64_t>(out.size()));
    }
    return out;
}

/// Describes the tensors of one layer, whose names are `prefix` + suffix.
class LayerDescriber {
   public:
    LayerDescriber(const Describer& in, const model::Hyperparameters& hp, int64_t layer, const std::string& prefix)
        : in_(in), hp_(hp), layer_(layer), prefix_(prefix), ratio_(hp.ratios[static_cast<size_t>(layer)]) {}

    Layer describe() const { return {hyper_connection("hc_attn_"), hyper_connection("hc_ffn_"), attention(), moe()}; }

   private:
    std::string name(const std::string& suffix) const { return prefix_ + suffix; }
    ggml_tensor* matrix(const std::string& suffix, const Shape& shape) const { return in_.matrix(name(suffix), shape); }
    ggml_tensor* f32_vector(const std::string& suffix, const Shape& shape) const {
        return in_.f32_vector(name(suffix), shape);
    }

    HyperConnection hyper_connection(const std::string& suffix) const {
        return in_.hyper_connection(name(suffix), hp_.streams * hp_.hidden, hp_.mix_size(), 3);
    }

    Attention attention() const {
        const int64_t heads = hp_.heads * hp_.head_size, ranks = hp_.output_groups * hp_.output_rank;
        Attention out{};
        out.norm = f32_vector("attn_norm.weight", {hp_.hidden});
        out.sinks = f32_vector("attn_sinks.weight", {hp_.heads});
        out.query_a = matrix("attn_q_a.weight", {hp_.hidden, hp_.query_rank});
        out.query_a_norm = f32_vector("attn_q_a_norm.weight", {hp_.query_rank});
        out.query_b = matrix("attn_q_b.weight", {hp_.query_rank, heads});
        out.kv = matrix("attn_kv.weight", {hp_.hidden, hp_.head_size});
        out.kv_norm = f32_vector("attn_kv_a_norm.weight", {hp_.head_size});
        out.output_a = matrix("attn_output_a.weight", {heads / hp_.output_groups, ranks});
        out.output_b = matrix("attn_output_b.weight", {ranks, hp_.hidden});
        if (ratio_ != 0) out.compressor = compressor("attn_compressor_", hp_.head_size);
        if (ratio_ == model::kCsaRatio) out.indexer = indexer();
        return out;
    }

    Compressor compressor(const std::string& prefix, int64_t size) const {
        const int64_t width = model::Hyperparameters::compress_width(ratio_, size);
        return {matrix(prefix + "kv.weight", {hp_.hidden, width}), matrix(prefix + "gate.weight", {hp_.hidden, width}),
                matrix(prefix + "ape.weight", {width, ratio_}), f32_vector(prefix + "norm.weight", {size})};
    }

    Indexer indexer() const {
        return {matrix("indexer.attn_q_b.weight", {hp_.query_rank, hp_.index_heads * hp_.index_size}),
                matrix("indexer.proj.weight", {hp_.hidden, hp_.index_heads}),
                compressor("indexer_compressor_", hp_.index_size)};
    }

    Moe moe() const {
        const int64_t width = hp_.expert_widths[static_cast<size_t>(layer_)], shared = width * hp_.shared_experts;
        Moe out{};
        out.norm = f32_vector("ffn_norm.weight", {hp_.hidden});
        out.router = matrix("ffn_gate_inp.weight", {hp_.hidden, hp_.experts});
        if (layer_ < hp_.hash_layers) {
            out.token_map = in_.token_map(name("ffn_gate_tid2eid.weight"), hp_.experts_used, hp_.vocab, hp_.experts);
        } else {
            out.bias = f32_vector("exp_probs_b.bias", {hp_.experts});
        }
        out.gate = matrix("ffn_gate_exps.weight", {hp_.hidden, width, hp_.experts});
        out.up = matrix("ffn_up_exps.weight", {hp_.hidden, width, hp_.experts});
        out.down = matrix("ffn_down_exps.weight", {width, hp_.hidden, hp_.experts});
        out.shared_gate = matrix("ffn_gate_shexp.weight", {hp_.hidden, shared});
        out.shared_up = matrix("ffn_up_shexp.weight", {hp_.hidden, shared});
        out.shared_down = matrix("ffn_down_shexp.weight", {shared, hp_.hidden});
        return out;
    }

    const Describer& in_;
    const model::Hyperparameters& hp_;
    int64_t layer_;
    const std::string& prefix_;
    int32_t ratio_;
};

}  // namespace

ggml_tensor* Describer::matrix(const std::string& name, const Shape& shape) const {
    const gguf::Tensor& found = find(name, shape);
    if (!is_weight_type(found.type)) fail_type(found, "a float or quantised type");
    return create(found, found.type);
}

ggml_tensor* Describer::f32_matrix(const std::string& name, const Shape& shape) const {
    const gguf::Tensor& found = find(name, shape);
    if (!is_weight_type(found.type)) fail_type(found, "a float or quantised type");
    return create(found, GGML_TYPE_F32);
}

ggml_tensor* Describer::f32_vector(const std::string& name, const Shape& shape) const {
    const gguf::Tensor& found = find(name, shape);
    if (!is_float_type(found.type)) fail_type(found, "F32, F16 or BF16; do not quantise this tensor");
    require_finite(name);
    return create(found, GGML_TYPE_F32);
}

ggml_tensor* Describer::token_map(const std::string& name, int64_t used, int64_t vocab, int64_t experts) const {
    const gguf::Tensor& found = find(name, {used, vocab});
    if (found.type != GGML_TYPE_I32) fail_type(found, "I32");
    check_ids(found, experts);
    return create(found, found.type);
}

void Describer::require_finite(const std::string& name) const {
    const std::vector<float> values = widened(*file_.find_tensor(name));
    const auto bad = std::ranges::find_if(values, [](float value) { return !std::isfinite(value); });
    if (bad == values.end()) return;
    throw file_.error("tensor '" + name + "' holds " + std::to_string(*bad) + " at " +
                      std::to_string(bad - values.begin()) + ", wanted finite values; the file is damaged");
}

HyperConnection Describer::hyper_connection(const std::string& prefix, int64_t wide_size, int64_t columns,
                                            int64_t scales) const {
    return {f32_matrix(prefix + "fn.weight", {wide_size, columns}), f32_vector(prefix + "base.weight", {columns}),
            f32_vector(prefix + "scale.weight", {scales})};
}

const gguf::Tensor& Describer::find(const std::string& name, const Shape& shape) const {
    const gguf::Tensor* found = file_.find_tensor(name);
    if (found == nullptr) throw file_.error("tensor '" + name + "' is missing, wanted shape " + show(shape));
    std::array<int64_t, 4> expected{1, 1, 1, 1};
    std::copy(shape.begin(), shape.end(), expected.begin());
    if (found->ne != expected) {
        throw file_.error("tensor '" + name + "' has shape " + gguf::show_shape(*found) + ", wanted " + show(shape));
    }
    return *found;
}

void Describer::check_ids(const gguf::Tensor& found, int64_t experts) const {
    const auto* ids = static_cast<const std::byte*>(found.data);
    const size_t count = found.nbytes / sizeof(int32_t);
    for (size_t i = 0; i < count; ++i) {
        int32_t id;
        std::memcpy(&id, ids + i * sizeof(id), sizeof(id));
        if (id >= 0 && id < experts) continue;
        throw file_.error("tensor '" + found.name + "' sends token " +
                          std::to_string(static_cast<int64_t>(i) / found.ne[0]) + " to expert " + std::to_string(id) +
                          ", wanted 0 to " + std::to_string(experts - 1));
    }
}

void Describer::fail_type(const gguf::Tensor& found, const std::string& expected) const {
    throw file_.error("tensor '" + found.name + "' is of type " + gguf::type_name(found.type) + ", wanted " + expected);
}

ggml_tensor* Describer::create(const gguf::Tensor& found, ggml_type type) const {
    ggml_tensor* tensor = ggml_new_tensor(ctx_, type, found.n_dims, found.ne.data());
    ggml_set_name(tensor, found.name.c_str());
    return tensor;
}

Layer describe_layer(const Describer& in, const model::Hyperparameters& hp, int64_t layer, const std::string& prefix) {
    return LayerDescriber(in, hp, layer, prefix).describe();
}

}  // namespace ds4::weights
