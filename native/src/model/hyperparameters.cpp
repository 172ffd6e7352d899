#include "model/hyperparameters.h"

#include <algorithm>

#include "gguf/text.h"
#include "model/keys.h"
#include "model/target_file.h"

namespace ds4::model {

namespace {

// Limits far above every published model. They keep the products taken later far below 2^63.
constexpr int64_t kMaxWidth = 1 << 20, kMaxVocab = 1 << 24, kMaxCount = 1 << 12, kMaxHeadSize = 1 << 12;
constexpr int64_t kMaxPosition = INT32_MAX;
constexpr double kMaxBase = 1e12, kMaxScale = 1e6, kTiny = 1e-30;

/// The number of streams that ggml's hyper-connection ops and kernels are written for.
constexpr int64_t kStreams = 4;
constexpr int64_t kGatingSqrtSoftplus = 4;

std::string number_of(int64_t value) { return std::to_string(value); }

void read_vocabulary(const gguf::File& file, const Keys& keys, Hyperparameters& hp) {
    const gguf::Tensor* embedding = file.find_tensor("token_embd.weight");
    if (embedding == nullptr)
        throw file.error("tensor 'token_embd.weight' is missing, wanted the embedding of a target");
    hp.vocab = embedding->ne[1];
    if (hp.vocab > kMaxVocab) {
        throw file.error("tensor 'token_embd.weight' has " + number_of(hp.vocab) + " rows, wanted at most " +
                         number_of(kMaxVocab));
    }
    keys.integer("vocab_size", hp.vocab, hp.vocab, hp.vocab);
    const auto tokens = file.opt_strings("tokenizer.ggml.tokens");
    if (tokens && static_cast<int64_t>(tokens->size()) != hp.vocab) {
        throw file.error("key 'tokenizer.ggml.tokens' has " + std::to_string(tokens->size()) + " entries, wanted " +
                         number_of(hp.vocab) + ", the rows of 'token_embd.weight'");
    }
}

void read_dimensions(const Keys& keys, Hyperparameters& hp) {
    hp.hidden = keys.integer("embedding_length", 1, kMaxWidth);
    hp.context = keys.integer("context_length", 1, kMaxPosition);
    hp.streams = keys.integer("hyper_connection.count", kStreams, kStreams);
    const int64_t wide = hp.streams * hp.hidden;
    keys.integer("embedding_length_out", wide, wide, wide);
    keys.integer("leading_dense_block_count", 0, 0, 0);
    hp.sinkhorn_iterations = static_cast<int32_t>(keys.integer("hyper_connection.sinkhorn_iterations", 1, 1000));
    hp.hc_epsilon = keys.number("hyper_connection.epsilon", kTiny, 1);
    hp.norm_epsilon = keys.number("attention.layer_norm_rms_epsilon", kTiny, 1);
}

void read_attention(const Keys& keys, Hyperparameters& hp) {
    hp.heads = keys.integer("attention.head_count", 1, kMaxCount);
    keys.integer("attention.head_count_kv", 1, 1);
    hp.head_size = keys.integer("attention.key_length", 2, kMaxHeadSize);
    keys.integer("attention.value_length", hp.head_size, hp.head_size);
    hp.rope_size = keys.integer("rope.dimension_count", 2, hp.head_size);
    if (hp.rope_size % 2 != 0) keys.fail("rope.dimension_count", number_of(hp.rope_size), "an even number");
    hp.query_rank = keys.integer("attention.q_lora_rank", 1, kMaxWidth);
    hp.output_groups = keys.integer("attention.output_group_count", 1, hp.heads);
    if (hp.heads % hp.output_groups != 0) {
        keys.fail("attention.output_group_count", number_of(hp.output_groups),
                  "a divisor of the " + number_of(hp.heads) + " heads");
    }
    hp.output_rank = keys.integer("attention.output_lora_rank", 1, kMaxWidth);
    hp.window = keys.integer("attention.sliding_window", 1, kMaxWidth);
}

void read_ratios(const Keys& keys, Hyperparameters& hp) {
    constexpr const char* key = "attention.compress_ratios";
    for (const int64_t ratio : keys.integers(key, hp.layers, 0, kHcaRatio)) {
        if (ratio != 0 && ratio != kCsaRatio && ratio != kHcaRatio)
            keys.fail(key, number_of(ratio) + " in a layer", "0, 4 or 128");
        hp.ratios.push_back(static_cast<int32_t>(ratio));
    }
}

void read_indexer(const Keys& keys, Hyperparameters& hp) {
    if (hp.ratio_count(kCsaRatio) == 0) return;
    hp.index_heads = keys.integer("attention.indexer.head_count", 1, kMaxCount);
    hp.index_size = keys.integer("attention.indexer.key_length", hp.rope_size, kMaxHeadSize);
    hp.index_top_k = keys.integer("attention.indexer.top_k", 1, kMaxWidth);
}

void read_rope_bases(const Keys& keys, Hyperparameters& hp) {
    constexpr const char *main = "rope.freq_base", *compressed = "attention.compress_rope_freq_base";
    constexpr const char* forked = "rope.freq_base_swa";
    hp.rope_base = keys.number(main, 1, kMaxBase);
    if (keys.has(compressed) || !keys.has(forked)) {
        const bool unused = hp.ratio_count(0) == hp.layers;
        hp.compress_rope_base =
            unused ? keys.number(compressed, 1, kMaxBase, hp.rope_base) : keys.number(compressed, 1, kMaxBase);
        return;
    }
    // Early forks keep the base of the compressed layers in the key that elsewhere has that of the window layers, and
    // do not agree which is which. The compressed base is the greater one in every published model.
    const float other = keys.number(forked, 1, kMaxBase);
    hp.compress_rope_base = std::max(hp.rope_base, other);
    hp.rope_base = std::min(hp.rope_base, other);
}

/// Returns whether rope scaling is YaRN. Throws FormatError for another type, and for scaling keys without a type:
/// other programs read those as linear scaling, and wrong results would not be noticed.
bool read_yarn_type(const gguf::File& file, const Keys& keys) {
    const auto type = file.opt_string(keys.full("rope.scaling.type"));
    if (type && *type != "yarn" && *type != "none")
        keys.fail("rope.scaling.type", gguf::quote(*type), "'yarn' or 'none'");
    if (type) return *type == "yarn";
    const std::string prefix = keys.full("rope.scaling.");
    for (const auto& [key, value] : file.metadata()) {
        if (key.starts_with(prefix)) keys.fail("rope.scaling.type", "missing", "'yarn', since '" + key + "' is there");
    }
    return false;
}

void read_yarn(const gguf::File& file, const Keys& keys, Hyperparameters& hp) {
    hp.yarn = read_yarn_type(file, keys);
    if (!hp.yarn) return;
    hp.yarn_factor = keys.number("rope.scaling.factor", 1, kMaxScale);
    hp.yarn_original_context = keys.integer("rope.scaling.original_context_length", 1, kMaxPosition);
    hp.yarn_beta_slow = keys.number("rope.scaling.yarn_beta_slow", kTiny, kMaxScale, hp.yarn_beta_slow);
    hp.yarn_beta_fast = keys.number("rope.scaling.yarn_beta_fast", hp.yarn_beta_slow, kMaxScale, hp.yarn_beta_fast);
}

void read_experts(const Keys& keys, Hyperparameters& hp) {
    hp.experts = keys.integer("expert_count", 1, kMaxCount);
    hp.experts_used = keys.integer("expert_used_count", 1, hp.experts);
    hp.shared_experts = keys.integer("expert_shared_count", 1, 1);
    hp.hash_layers = keys.integer("hash_layer_count", 0, hp.layers);
    hp.expert_widths = keys.integers("expert_feed_forward_length", hp.layers, 1, kMaxWidth);
    hp.normalise_weights = keys.boolean("expert_weights_norm");
    hp.routed_scale = keys.number("expert_weights_scale", kTiny, kMaxScale);
    keys.integer("expert_gating_func", kGatingSqrtSoftplus, kGatingSqrtSoftplus, kGatingSqrtSoftplus);
    keys.integer("expert_group_count", 0, 1, 0);
    keys.integer("expert_group_used_count", 0, 1, 0);
    hp.clamp_routed = keys.numbers("swiglu_clamp_exp", hp.layers, 0, kMaxScale);
    hp.clamp_shared =
        keys.has("swiglu_clamp_shexp") ? keys.numbers("swiglu_clamp_shexp", hp.layers, 0, kMaxScale) : hp.clamp_routed;
}

}  // namespace

int64_t Hyperparameters::ratio_count(int ratio) const { return std::ranges::count(ratios, ratio); }

Hyperparameters read_hyperparameters(const gguf::File& file) {
    require_target(file);
    const Keys keys(file, "deepseek4.");
    Hyperparameters hp{};
    hp.layers = count_layers(file);
    read_vocabulary(file, keys, hp);
    read_dimensions(keys, hp);
    read_attention(keys, hp);
    read_ratios(keys, hp);
    read_indexer(keys, hp);
    read_rope_bases(keys, hp);
    read_yarn(file, keys, hp);
    read_experts(keys, hp);
    return hp;
}

}  // namespace ds4::model
