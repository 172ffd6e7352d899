#pragma once
// Sampling policy: logits -> distribution -> token, in the order of docs/dspark.md section 3.3.

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace ds4 {

/// What a request asks of the sampler. Snapshotted once per request; never changed in the middle of one.
struct SamplingPolicy {
    /// 0 (or below 1e-5) is greedy: one-hot on the arg max, lowest id on ties. 1 leaves logits as they are, bit for
    /// bit.
    float temperature = 1.0f;
    /// Keep the k largest logits, ties with the k-th kept. 0 turns it off.
    int32_t top_k = 0;
    /// Keep the shortest prefix of the sorted distribution that reaches p. 1 turns it off.
    float top_p = 1.0f;
    /// Drop tokens less likely than min_p times the likeliest. 0 turns it off.
    float min_p = 0.0f;
    /// Divide positive logits of seen tokens by it, multiply negative ones. 1 turns it off.
    float repetition_penalty = 1.0f;
    /// Subtracted once from the logit of every seen token. 0 turns it off.
    float presence_penalty = 0.0f;
    /// Subtracted from a seen token's logit once per occurrence. 0 turns it off.
    float frequency_penalty = 0.0f;
    /// How many of the latest tokens the penalties look at; -1 is all of them.
    int32_t penalty_last_n = -1;
    /// Added to the logits of single tokens (id, bias); -inf bans a token.
    std::vector<std::pair<int32_t, float>> logit_bias;

    bool greedy() const { return temperature < 1e-5f; }
    /// Whether the tokens before a row change its distribution.
    bool penalises() const {
        return repetition_penalty != 1.0f || presence_penalty != 0.0f || frequency_penalty != 0.0f;
    }
    /// Whether a temperature is all there is to it: the token depends on nothing but the row, and none is cut off.
    bool temperature_only() const {
        return !penalises() && logit_bias.empty() && (greedy() || (top_k == 0 && top_p >= 1.0f && min_p <= 0.0f));
    }
    /// Throws RequestError naming the field that is out of range.
    void validate() const;
};

/// The Philox 4x32-10 block function (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011):
/// 128 random bits of a counter and a key, without state.
std::array<uint32_t, 4> philox4x32(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key);

/// Index drawn with probability weights[i] / sum(weights) for `u` in [0, 1): the inverse of the cumulative weights.
/// Never an index of weight zero. Throws RequestError when the weights sum to nothing or to no finite number.
int32_t draw(std::span<const float> weights, double u);

/// Counter-based generator: the stream depends on (seed, draw number) only.
class Rng {
   public:
    explicit Rng(uint64_t seed, uint64_t counter = 0) : seed_(seed), counter_(counter) {}
    /// Uniform in [0, 1) with 53 bits.
    double uniform();
    uint64_t seed() const { return seed_; }
    /// Leaves the next draw to somebody else, and returns its number: with the seed, a key that is used once.
    uint64_t skip() { return counter_++; }
    /// Number of draws made so far; Rng(seed, counter) continues from there.
    uint64_t counter() const { return counter_; }

   private:
    uint64_t seed_;
    uint64_t counter_;
};

/// Turns one row of logits into the distribution of the policy, reusing its buffers from call to call: one thread
/// at a time.
class Sampler {
   public:
    explicit Sampler(SamplingPolicy policy);
    const SamplingPolicy& policy() const { return policy_; }

    /// Probabilities [n_vocab] after the whole policy (zero for removed tokens), summing to 1; the caller may overwrite
    /// them, and the next call does. `history` are the tokens the penalties look at, oldest first; a logit of -inf is a
    /// removed token. With `ids`, the row is a shortlist: logits[i] belongs to token ids[i] (distinct), bias and
    /// penalties reach the listed tokens only, and ties go to the first listed.
    /// Throws RequestError when every token is removed, an id lies outside the vocabulary, or `ids` do not fit the
    /// logits, and BackendError, naming the token, when a logit is NaN or +inf.
    std::span<float> distribution(std::span<const float> logits, std::span<const int32_t> history,
                                  std::span<const int32_t> ids = {});
    /// Draws one token, of `ids` where they are given; greedy makes no draw from `rng`.
    int32_t sample(std::span<const float> logits, std::span<const int32_t> history, Rng& rng,
                   std::span<const int32_t> ids = {});

   private:
    std::span<const float> adjusted(std::span<const float> logits, std::span<const int32_t> history,
                                    std::span<const int32_t> ids);
    void keep_top_k(std::span<const float> logits);
    void keep_top_p();
    void keep_min_p();

    SamplingPolicy policy_;
    std::vector<float> adjusted_;
    std::vector<float> row_;
    std::vector<int32_t> counts_;
    std::vector<uint32_t> keys_;
};

/// What a model made of one token: natural logarithms of its softmax at temperature 1, before any policy.
struct TokenLogprobs {
    int32_t token;
    double logprob;
    std::vector<std::pair<int32_t, double>> top;  // the likeliest, descending; the lowest ids first among equals
};

/// Of each token by its row of `logits` [at least tokens, vocab], with the `top` likeliest. Throws RequestError for
/// shapes and ids that do not fit, BackendError when a logit is NaN or +inf.
std::vector<TokenLogprobs> logprobs(std::span<const float> logits, size_t vocab, std::span<const int32_t> tokens,
                                    int64_t top);

}  // namespace ds4
