#pragma once
// The sampling policy: logits to a distribution to a token, in the order of docs/dspark.md section 3.3.

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace ds4 {

/// The sampling parameters of one request. A request copies them when it starts; they do not change while it runs.
struct SamplingPolicy {
    /// Divides the logits. 0 (or below 1e-5) is greedy: probability 1 for the largest logit, the lowest id among
    /// equals. 1 leaves the logits as they are, bit for bit.
    float temperature = 1.0f;
    /// Keeps the k largest logits, and those equal to the k-th. 0 turns it off.
    int32_t top_k = 0;
    /// Keeps the most probable tokens whose sum first reaches top_p. 1 turns it off.
    float top_p = 1.0f;
    /// Drops tokens less probable than min_p times the most probable one. 0 turns it off.
    float min_p = 0.0f;
    /// Divides the positive logits of tokens in the history, and multiplies the negative ones. 1 turns it off.
    float repetition_penalty = 1.0f;
    /// Is subtracted once from the logit of every token in the history. 0 turns it off.
    float presence_penalty = 0.0f;
    /// Is subtracted from the logit of a token once for each of its occurrences in the history. 0 turns it off.
    float frequency_penalty = 0.0f;
    /// The number of latest tokens that make up the history; -1 is all of them.
    int32_t penalty_last_n = -1;
    /// Pairs (token id, bias) to add to logits; a bias of -inf bans the token.
    std::vector<std::pair<int32_t, float>> logit_bias;

    bool greedy() const { return temperature < 1e-5f; }
    /// Returns whether the tokens before a row change the row's distribution.
    bool penalises() const {
        return repetition_penalty != 1.0f || presence_penalty != 0.0f || frequency_penalty != 0.0f;
    }
    /// Returns whether only the temperature applies: no token is removed, and the distribution depends on the row's
    /// logits alone.
    bool temperature_only() const {
        return !penalises() && logit_bias.empty() && (greedy() || (top_k == 0 && top_p >= 1.0f && min_p <= 0.0f));
    }
    /// Throws RequestError naming the first field that is out of range.
    void validate() const;
};

/// Returns the 128 random bits that the Philox 4x32-10 block function gives for a counter and a key (Salmon et al.,
/// "Parallel random numbers: as easy as 1, 2, 3", 2011). It has no state.
std::array<uint32_t, 4> philox4x32(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key);

/// Draws an index with probability weights[i] / sum(weights), by inverting the cumulative sum at `u` in [0, 1). Never
/// returns an index of weight 0. Throws RequestError when the sum of the weights is not finite or not above 0.
int32_t draw(std::span<const float> weights, double u);

/// A counter-based random number generator: a draw depends on the seed and the number of the draw only.
class Rng {
   public:
    explicit Rng(uint64_t seed, uint64_t counter = 0) : seed_(seed), counter_(counter) {}
    /// Draws a number from [0, 1), uniform, with 53 random bits.
    double uniform();
    uint64_t seed() const { return seed_; }
    /// Skips one draw and returns its number. The seed and this number are a key that nothing else uses.
    uint64_t skip() { return counter_++; }
    /// Returns the number of draws made so far; Rng(seed, counter) continues from there.
    uint64_t counter() const { return counter_; }

   private:
    uint64_t seed_;
    uint64_t counter_;
};

/// Turns rows of logits into distributions of one policy. It reuses its buffers, so only one thread at a time may use
/// it.
class Sampler {
   public:
    explicit Sampler(SamplingPolicy policy);
    const SamplingPolicy& policy() const { return policy_; }

    /// Returns the probabilities [n_vocab] after the whole policy: they sum to 1, and removed tokens have 0. The result
    /// is valid until the next call, and the caller may overwrite it. `history` holds the tokens that the penalties
    /// look at, oldest first. A logit of -inf is a removed token.
    /// With `ids`, the row holds candidates only: logits[i] belongs to token ids[i]. The ids are distinct, bias and
    /// penalties apply to listed tokens only, and the first listed token wins among equals. Throws RequestError when
    /// every token is removed, an id lies outside the vocabulary, or `ids` and `logits` differ in length; BackendError
    /// naming the token when a logit is NaN or +inf.
    std::span<float> distribution(std::span<const float> logits, std::span<const int32_t> history,
                                  std::span<const int32_t> ids = {});
    /// Draws one token id, from `ids` where they are given. Throws as `distribution` does. A greedy policy makes no
    /// draw from `rng`.
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

/// The log probability of one token, and the most probable tokens of its row: natural logarithms of the softmax at
/// temperature 1, before any policy.
struct TokenLogprobs {
    int32_t token;
    double logprob;
    std::vector<std::pair<int32_t, double>> top;  // descending; the lowest ids first among equals
};

/// Returns, for each token i, its log probability in row i of `logits` [at least tokens, vocab] with the `top` most
/// probable tokens. Throws RequestError for shapes and ids that do not fit, BackendError when a logit is NaN or +inf.
std::vector<TokenLogprobs> logprobs(std::span<const float> logits, size_t vocab, std::span<const int32_t> tokens,
                                    int64_t top);

}  // namespace ds4
