#include "drafter/hyperparameters.h"

#include <algorithm>

#include "drafter/metadata.h"
#include "model/keys.h"

namespace ds4::drafter {

namespace {

// A limit that keeps products of two sizes far below 2^63.
constexpr int64_t kMaxSize = 1 << 24;
constexpr double kMaxNumber = 1e12, kTiny = 1e-30;
constexpr int64_t kGatingSqrtSoftplus = 4;

std::string text(int64_t value) { return std::to_string(value); }

const gguf::Tensor& need(const gguf::File& file, const std::string& name) {
    const gguf::Tensor* found = file.find_tensor(name);
    if (found == nullptr) throw file.error("tensor '" + name + "' is missing, wanted in every drafter of its kind");
    return *found;
}

int64_t length(const gguf::File& file, const std::string& name) {
    const int64_t found = need(file, name).ne[0];
    if (found <= kMaxSize) return found;
    throw file.error("tensor '" + name + "' has rows of " + text(found) + ", wanted at most " + text(kMaxSize));
}

void read_rank(const gguf::File& file, const Names& names, const Metadata& metadata, Hyperparameters& hp) {
    const bool without = metadata.rank == 0 && file.find_tensor(names.markov_embedding) == nullptr;
    hp.rank = without ? 0 : length(file, names.markov_embedding);
    if (metadata.rank.value_or(hp.rank) == hp.rank) return;
    throw file.error("tensor '" + names.markov_embedding + "' is of rank " + text(hp.rank) +
                     ", but the metadata says " + text(*metadata.rank));
}

/// Reads the confidence head. Its width says whether it also reads the Markov row; any other width is reported as a
/// wrong shape when the weights are described.
void read_confidence(const gguf::File& file, const Names& names, const Metadata& metadata, Hyperparameters& hp) {
    const gguf::Tensor* found = file.find_tensor(names.confidence);
    hp.confidence = found != nullptr;
    if (metadata.confidence.value_or(hp.confidence) != hp.confidence) {
        throw file.error("tensor '" + names.confidence + "' is " + (found ? "there" : "missing") +
                         ", but the metadata says there is " + (found ? "no" : "a") + " confidence head");
    }
    if (!found) return;
    const int64_t width = found->ne[0];
    if (metadata.confidence_width.value_or(width) != width) {
        throw file.error("tensor '" + names.confidence + "' has rows of " + text(width) + ", but the metadata says " +
                         text(*metadata.confidence_width));
    }
    hp.confidence_markov = hp.rank > 0 && width != hp.stages.hidden;
}

/// Reads the sizes of the stages: from the metadata, or else from the shapes of tensors. A contradiction is reported as
/// a wrong shape when the weights are described.
void read_sizes(const gguf::File& file, const Names& names, const model::Keys& keys, model::Hyperparameters& hp) {
    const std::string stage = names.stage(0);
    const gguf::Tensor& output = need(file, stage + "attn_output_a.weight");
    const gguf::Tensor* markov = file.find_tensor(names.markov_embedding);
    const auto size = [&](const char* key, int64_t found) { return keys.integer(key, 1, kMaxSize, found); };
    hp.hidden = size("embedding_length", length(file, names.fusion_norm));
    hp.vocab = size("vocab_size", markov ? markov->ne[1] : hp.vocab);
    hp.streams = size("hyper_connection.count", length(file, names.hc_head + "base.weight"));
    hp.heads = size("attention.head_count", length(file, stage + "attn_sinks.weight"));
    hp.head_size = size("attention.key_length", length(file, stage + "attn_kv_a_norm.weight"));
    hp.query_rank = size("attention.q_lora_rank", length(file, stage + "attn_q_a_norm.weight"));
    hp.output_groups =
        size("attention.output_group_count", std::max<int64_t>(1, hp.heads * hp.head_size / output.ne[0]));
    hp.output_rank = size("attention.output_lora_rank", std::max<int64_t>(1, output.ne[1] / hp.output_groups));
    if (hp.heads % hp.output_groups != 0) {
        throw file.error("has " + text(hp.output_groups) + " output groups, wanted a divisor of its " + text(hp.heads) +
                         " heads");
    }
}

/// Reads the numbers that no shape tells. Each stays that of the target unless the file has it.
void read_attention(const model::Keys& keys, model::Hyperparameters& hp) {
    hp.rope_size = keys.integer("rope.dimension_count", 2, hp.head_size, hp.rope_size);
    hp.window = keys.integer("attention.sliding_window", 1, kMaxSize, hp.window);
    keys.integer("attention.head_count_kv", 1, 1, 1);
    keys.integer("attention.value_length", hp.head_size, hp.head_size, hp.head_size);
    hp.sinkhorn_iterations =
        static_cast<int32_t>(keys.integer("hyper_connection.sinkhorn_iterations", 1, 1000, hp.sinkhorn_iterations));
    hp.hc_epsilon = keys.number("hyper_connection.epsilon", kTiny, 1, hp.hc_epsilon);
    hp.norm_epsilon = keys.number("attention.layer_norm_rms_epsilon", kTiny, 1, hp.norm_epsilon);
    hp.rope_base = keys.number("rope.freq_base", 1, kMaxNumber, hp.rope_base);
    // A ds4 file may have the metadata of the target. As there, without a key of its own the base of the compressed
    // layers is the greater of the two, so the plain one is the lower.
    if (!keys.has("attention.compress_rope_freq_base"))
        hp.rope_base = std::min(hp.rope_base, keys.number("rope.freq_base_swa", 1, kMaxNumber, hp.rope_base));
}

/// Reads one SwiGLU clamp per stage. When the file has the metadata of the target, as ds4 files may, the stages take
/// the values of its last layers.
std::vector<float> read_clamps(const gguf::File& file, const model::Keys& keys, const char* key, int64_t stages,
                               const std::vector<float>& targets) {
    const auto raw = file.opt_doubles(keys.full(key));
    if (!raw) return values_of_last_layers(targets, stages);
    const auto found = keys.numbers(key, std::ssize(*raw), 0, kMaxNumber);
    const bool same = std::ranges::adjacent_find(found, std::not_equal_to()) == found.end();
    if (found.empty() || (!same && std::ssize(found) < stages)) {
        keys.fail(key, "an array of " + text(std::ssize(found)), "an entry for each of " + text(stages) + " stages");
    }
    return values_of_last_layers(found, stages);
}

void read_experts(const gguf::File& file, const Names& names, const model::Keys& keys, const Metadata& metadata,
                  model::Hyperparameters& hp) {
    hp.experts = metadata.experts ? *metadata.experts : length(file, names.stage(0) + "exp_probs_b.bias");
    hp.experts_used = keys.integer("expert_used_count", 1, hp.experts, hp.experts_used);
    hp.shared_experts = keys.integer("expert_shared_count", 1, 1, 1);
    hp.expert_widths.clear();
    for (int64_t i = 0; i < names.stages; ++i)
        hp.expert_widths.push_back(need(file, names.stage(i) + "ffn_gate_exps.weight").ne[1]);
    if (keys.has("expert_weights_norm")) hp.normalise_weights = keys.boolean("expert_weights_norm");
    hp.routed_scale = keys.number("expert_weights_scale", kTiny, kMaxNumber, hp.routed_scale);
    keys.integer("expert_gating_func", kGatingSqrtSoftplus, kGatingSqrtSoftplus, kGatingSqrtSoftplus);
    hp.clamp_routed = read_clamps(file, keys, "swiglu_clamp_exp", names.stages, hp.clamp_routed);
    hp.clamp_shared = read_clamps(file, keys, "swiglu_clamp_shexp", names.stages, hp.clamp_shared);
}

/// Makes every stage a layer with a sliding window only, no compression, no hash routing, and the plain rope base.
void set_sliding_window_only(const Names& names, model::Hyperparameters& hp) {
    hp.layers = names.stages;
    hp.ratios.assign(static_cast<size_t>(names.stages), 0);
    hp.hash_layers = 0;
    hp.compress_rope_base = hp.rope_base;
    hp.yarn = false;
    hp.yarn_factor = 1;
    hp.yarn_original_context = 0;
    hp.index_heads = hp.index_size = hp.index_top_k = 0;
}

}  // namespace

std::vector<float> values_of_last_layers(const std::vector<float>& layers, int64_t stages) {
    std::vector<float> out(static_cast<size_t>(stages), layers.empty() ? 0 : layers.front());
    std::copy_backward(layers.end() - std::min<int64_t>(stages, std::ssize(layers)), layers.end(), out.end());
    return out;
}

Hyperparameters read_hyperparameters(const gguf::File& file, const Names& names, const model::Hyperparameters& target) {
    const Metadata metadata = read_metadata(file, names);
    const model::Keys keys(file, names.architecture + ".");
    Hyperparameters hp{names.contract, metadata.block, metadata.from_anchor, metadata.noise, metadata.taps, 0, false,
                       false,          target};
    read_sizes(file, names, keys, hp.stages);
    read_attention(keys, hp.stages);
    read_experts(file, names, keys, metadata, hp.stages);
    set_sliding_window_only(names, hp.stages);
    read_rank(file, names, metadata, hp);
    read_confidence(file, names, metadata, hp);
    return hp;
}

}  // namespace ds4::drafter
