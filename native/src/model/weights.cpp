#include "model/weights.h"

#include <array>
#include <cstring>

#include "gguf/tensors.h"

namespace ds4::model {

namespace {

using Shape = std::vector<int64_t>;

/// Whether ggml can multiply by, or widen, weights of this type.
bool is_weight_type(ggml_type type) { return type == GGML_TYPE_F32 || ggml_get_type_traits(type)->to_float != nullptr; }

bool is_float_type(ggml_type type) { return type == GGML_TYPE_F32 || type == GGML_TYPE_F16 || type == GGML_TYPE_BF16; }

std::string show(const Shape& shape) {
    std::string out;
    for (const int64_t size : shape) out += (out.empty() ? "(" : ", ") + std::to_string(size);
    return out + ")";
}

/// Finds tensors by name, checks them, and creates their counterparts.
class Describer {
   public:
    Describer(ggml_context* ctx, const gguf::File& file) : ctx_(ctx), file_(file) {}

    bool has(const std::string& name) const { return file_.find_tensor(name) != nullptr; }

    /// A matrix, as it is in the file.
    ggml_tensor* matrix(const std::string& name, const Shape& shape) const {
        const gguf::Tensor& found = find(name, shape);
        if (!is_weight_type(found.type)) fail_type(found, "a float or quantised type");
        return create(found, found.type);
    }

    /// A matrix that is computed with in F32, whatever the file holds.
    ggml_tensor* wide_matrix(const std::string& name, const Shape& shape) const {
        const gguf::Tensor& found = find(name, shape);
        if (!is_weight_type(found.type)) fail_type(found, "a float or quantised type");
        return create(found, GGML_TYPE_F32);
    }

    /// A vector that is computed with in F32.
    ggml_tensor* wide(const std::string& name, const Shape& shape) const {
        const gguf::Tensor& found = find(name, shape);
        if (!is_float_type(found.type)) fail_type(found, "F32, F16 or BF16; do not quantise this tensor");
        return create(found, GGML_TYPE_F32);
    }

    /// The routing table of a hash layer. Its ids are checked here, since a kernel would read out of bounds by them.
    ggml_tensor* token_map(const std::string& name, int64_t used, int64_t vocab, int64_t experts) const {
        const gguf::Tensor& found = find(name, {used, vocab});
        if (found.type != GGML_TYPE_I32) fail_type(found, "I32");
        check_ids(found, experts);
        return create(found, found.type);
    }

   private:
    const gguf::Tensor& find(const std::string& name, const Shape& shape) const {
        const gguf::Tensor* found = file_.find_tensor(name);
        if (found == nullptr) {
            throw file_.error("tensor '" + name + "' is missing, wanted shape " + show(shape));
        }
        std::array<int64_t, 4> wanted{1, 1, 1, 1};
        std::copy(shape.begin(), shape.end(), wanted.begin());
        if (found->ne != wanted) {
            throw file_.error("tensor '" + name + "' has shape " + gguf::show_shape(*found) + ", wanted " +
                              show(shape));
        }
        return *found;
    }

    void check_ids(const gguf::Tensor& found, int64_t experts) const {
        const auto* ids = static_cast<const std::byte*>(found.data);
        const size_t count = found.nbytes / sizeof(int32_t);
        for (size_t i = 0; i < count; ++i) {
            int32_t id;
            std::memcpy(&id, ids + i * sizeof(id), sizeof(id));
            if (id >= 0 && id < experts) continue;
            throw file_.error("tensor '" + found.name + "' sends token " +
                              std::to_string(static_cast<int64_t>(i) / found.ne[0]) + " to expert " +
                              std::to_string(id) + ", wanted 0 to " + std::to_string(experts - 1));
        }
    }

    [[noreturn]] void fail_type(const gguf::Tensor& found, const std::string& wanted) const {
        throw file_.error("tensor '" + found.name + "' is of type " + gguf::type_name(found.type) + ", wanted " +
                          wanted);
    }

    ggml_tensor* create(const gguf::Tensor& found, ggml_type type) const {
        ggml_tensor* tensor = ggml_new_tensor(ctx_, type, found.n_dims, found.ne.data());
        ggml_set_name(tensor, found.name.c_str());
        return tensor;
    }

    ggml_context* ctx_;
    const gguf::File& file_;
};

/// The tensors of one layer; `name` puts the layer's prefix before a suffix.
class LayerDescriber {
   public:
    LayerDescriber(const Describer& in, const Hyperparameters& hp, int64_t layer)
        : in_(in), hp_(hp), layer_(layer), ratio_(hp.ratios[static_cast<size_t>(layer)]) {}

    Layer describe() const { return {hyper_connection("hc_attn_"), hyper_connection("hc_ffn_"), attention(), moe()}; }

   private:
    std::string name(const std::string& suffix) const { return "blk." + std::to_string(layer_) + "." + suffix; }
    ggml_tensor* matrix(const std::string& suffix, const Shape& shape) const { return in_.matrix(name(suffix), shape); }
    ggml_tensor* wide(const std::string& suffix, const Shape& shape) const { return in_.wide(name(suffix), shape); }

    HyperConnection hyper_connection(const std::string& prefix) const {
        const int64_t mix = hp_.mix_size();
        return {in_.wide_matrix(name(prefix + "fn.weight"), {hp_.streams * hp_.hidden, mix}),
                wide(prefix + "base.weight", {mix}), wide(prefix + "scale.weight", {3})};
    }

    Attention attention() const {
        const int64_t heads = hp_.heads * hp_.head_size, ranks = hp_.output_groups * hp_.output_rank;
        Attention out{};
        out.norm = wide("attn_norm.weight", {hp_.hidden});
        out.sinks = wide("attn_sinks.weight", {hp_.heads});
        out.query_a = matrix("attn_q_a.weight", {hp_.hidden, hp_.query_rank});
        out.query_a_norm = wide("attn_q_a_norm.weight", {hp_.query_rank});
        out.query_b = matrix("attn_q_b.weight", {hp_.query_rank, heads});
        out.kv = matrix("attn_kv.weight", {hp_.hidden, hp_.head_size});
        out.kv_norm = wide("attn_kv_a_norm.weight", {hp_.head_size});
        out.output_a = matrix("attn_output_a.weight", {heads / hp_.output_groups, ranks});
        out.output_b = matrix("attn_output_b.weight", {ranks, hp_.hidden});
        if (ratio_ != 0) out.compressor = compressor("attn_compressor_", hp_.head_size);
        if (ratio_ == 4) out.indexer = indexer();
        return out;
    }

    Compressor compressor(const std::string& prefix, int64_t size) const {
        const int64_t width = Hyperparameters::compress_width(ratio_, size);
        return {matrix(prefix + "kv.weight", {hp_.hidden, width}), matrix(prefix + "gate.weight", {hp_.hidden, width}),
                matrix(prefix + "ape.weight", {width, ratio_}), wide(prefix + "norm.weight", {size})};
    }

    Indexer indexer() const {
        return {matrix("indexer.attn_q_b.weight", {hp_.query_rank, hp_.index_heads * hp_.index_size}),
                matrix("indexer.proj.weight", {hp_.hidden, hp_.index_heads}),
                compressor("indexer_compressor_", hp_.index_size)};
    }

    Moe moe() const {
        const int64_t width = hp_.expert_widths[static_cast<size_t>(layer_)], shared = width * hp_.shared_experts;
        Moe out{};
        out.norm = wide("ffn_norm.weight", {hp_.hidden});
        out.router = matrix("ffn_gate_inp.weight", {hp_.hidden, hp_.experts});
        if (layer_ < hp_.hash_layers) {
            out.token_map = in_.token_map(name("ffn_gate_tid2eid.weight"), hp_.experts_used, hp_.vocab, hp_.experts);
        } else {
            out.bias = wide("exp_probs_b.bias", {hp_.experts});
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
    const Hyperparameters& hp_;
    int64_t layer_;
    int32_t ratio_;
};

HyperConnection describe_head(const Describer& in, const Hyperparameters& hp) {
    return {in.wide_matrix("output_hc_fn.weight", {hp.streams * hp.hidden, hp.streams}),
            in.wide("output_hc_base.weight", {hp.streams}), in.wide("output_hc_scale.weight", {1})};
}

}  // namespace

Weights describe_weights(ggml_context* ctx, const gguf::File& file, const Hyperparameters& hp) {
    const Describer in(ctx, file);
    Weights out{};
    out.embedding = in.matrix("token_embd.weight", {hp.hidden, hp.vocab});
    // Without a matrix of its own, the head is tied to the embedding.
    out.output = in.has("output.weight") ? in.matrix("output.weight", {hp.hidden, hp.vocab}) : out.embedding;
    out.output_norm = in.wide("output_norm.weight", {hp.hidden});
    out.hc_head = describe_head(in, hp);
    for (int64_t layer = 0; layer < hp.layers; ++layer) {
        out.layers.push_back(LayerDescriber(in, hp, layer).describe());
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
