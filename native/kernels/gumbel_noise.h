// Random numbers, and what is kept of the tokens seen so far: one text for the kernels of gpu/ and of metal/, in the
// language that both have. Whoever includes it has opened a namespace with DS4_FUNCTION (before a function that runs on
// the device), high_bits_of_product, exp, log, fma and kInfinity.
//
// A draw is Gumbel-max: of tokens with log-weights w and independent Gumbel noise g, the greatest w + g is token v with
// probability exp(w_v) / sum exp(w). The noise of a token depends on the key, what is drawn, the row and the token, and
// so neither on the grid nor on the width of a wave.

/// A DrawKey (launcher.h) as four words of 32 bits.
struct NoiseKey {
    uint32_t seed_low, seed_high, counter_low, counter_high;
};

/// The counter's fourth word begins with what is drawn. 0 is the host's generator's, which may have the same seed.
enum Drawn { kProposal = 1, kAcceptance = 2, kToken = 3 };

struct PhiloxBits {
    uint32_t a, b, c, d;
};

/// Philox 4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011), as on the host.
DS4_FUNCTION PhiloxBits philox(PhiloxBits x, uint32_t key0, uint32_t key1) {
    for (int round = 0; round < 10; round++) {
        const PhiloxBits next = {high_bits_of_product(0xCD9E8D57u, x.c) ^ x.b ^ key0, 0xCD9E8D57u * x.c,
                                 high_bits_of_product(0xD2511F53u, x.a) ^ x.d ^ key1, 0xD2511F53u * x.a};
        x = next;
        key0 += 0x9E3779B9u;
        key1 += 0xBB67AE85u;
    }
    return x;
}

/// -log(1 - t) for t in (0, 1/2]. Below 1/4 it is 2 artanh(t / (2 - t)), whose series ends at 2e-8 relative: small
/// values keep all their digits, and these are the ones that win a draw.
DS4_FUNCTION float negative_log_below_one(float t) {
    if (t > 0.25f) return -log(1 - t);
    const float s = t / (2 - t), square = s * s;
    return 2 * s * fma(square, fma(square, fma(square, 1.0f / 7, 1.0f / 5), 1.0f / 3), 1.0f);
}

/// Exponentially distributed, never 0 and never infinite: -log of the uniform number 1 - (x + 1/2) 2^-64 with the 64
/// random bits x. Either end of (0, 1) is taken as its distance to that end, which a float holds to 24 digits.
DS4_FUNCTION float exponential(NoiseKey key, Drawn drawn, int row, int index) {
    const PhiloxBits counter = {key.counter_low, key.counter_high, static_cast<uint32_t>(index),
                                static_cast<uint32_t>(drawn) << 16 | static_cast<uint32_t>(row)};
    const PhiloxBits bits = philox(counter, key.seed_low, key.seed_high);
    const bool upper = bits.b >> 31;
    const uint32_t high = upper ? ~bits.b : bits.b, low = upper ? ~bits.a : bits.a;
    // 2^-32, 2^-64, 2^-65
    const float t = fma(static_cast<float>(high), 2.3283064365386963e-10f,
                        fma(static_cast<float>(low), 5.421010862427522e-20f, 2.710505431213761e-20f));
    return upper ? -log(t) : negative_log_below_one(t);
}

DS4_FUNCTION float gumbel(NoiseKey key, Drawn drawn, int row, int index) {
    return -log(exponential(key, drawn, row, index));
}

/// The token of an empty Candidate or Pick.
enum { kNoToken = 0x7fffffff };

/// The softmax and the Gumbel-max winner over some logits of a row. All is relative to the greatest of them, so that no
/// temperature makes numbers so large that differences are lost.
struct Candidate {
    float max;      // the greatest logit
    float sum;      // of exp((logit - max) scale); NaN where a logit is NaN
    float score;    // of the token that wins: (logit - max) scale + noise
    int32_t token;  // of equal scores the lowest
};

DS4_FUNCTION Candidate no_candidate() {
    const Candidate none = {-kInfinity, 0, -kInfinity, kNoToken};
    return none;
}

DS4_FUNCTION Candidate candidate(float logit, float noise, int token) {
    Candidate c = no_candidate();
    if (logit == logit) {
        c.max = logit;
        c.sum = 1;
        c.score = noise;
        c.token = token;
    } else {
        c.sum = logit;
    }
    return c;
}

/// Merges two candidates; the bits are the same whichever comes first. `scale` is 1 / temperature.
DS4_FUNCTION Candidate merged(Candidate a, Candidate b, float scale) {
    const bool swap = b.max > a.max;
    const Candidate upper = swap ? b : a, lower = swap ? a : b;
    const float shift = lower.max == upper.max ? 0.0f : (lower.max - upper.max) * scale;  // equal infinities, too
    const float shifted = lower.score + shift;
    const bool rises = shifted > upper.score || (shifted == upper.score && lower.token < upper.token);
    const Candidate both = {upper.max, fma(lower.sum, exp(shift), upper.sum), rises ? shifted : upper.score,
                            rises ? lower.token : upper.token};
    return both;
}

/// A row's softmax: the log-probability of a token is (logit - max) scale - log_sum.
struct RowSum {
    float max, log_sum;
};

DS4_FUNCTION RowSum row_sum(Candidate all) {
    const RowSum row = {all.max, log(all.sum)};
    return row;
}

/// Whether the row is a distribution: no NaN, no +inf, not -inf throughout.
DS4_FUNCTION bool is_distribution(RowSum row) {
    return row.max > -kInfinity && row.max < kInfinity && row.log_sum == row.log_sum;
}

DS4_FUNCTION float log_probability(RowSum row, float logit, float scale) {
    return (logit - row.max) * scale - row.log_sum;
}

/// Whether a proposal is accepted: with probability min(1, p / q). An exponential number E is above log q - log p = d >
/// 0 with probability exp(-d) = p / q, and is never 0. p = 0 makes d infinite or NaN, and the proposal is rejected.
DS4_FUNCTION bool accepted(float log_p, float log_q, float exponential) { return exponential > log_q - log_p; }

/// log of max(p - q, 0).
DS4_FUNCTION float log_residual(float log_p, float log_q) {
    return log_p > log_q ? log_p + log(1 - exp(log_q - log_p)) : -kInfinity;
}

/// Draws from some tokens of a row: from the residual, and from p itself for when there is none.
struct Pick {
    float mass;                  // of the residual
    float score, plain_score;    // of the tokens that win
    int32_t token, plain_token;  // of equal scores the lowest
};

DS4_FUNCTION Pick no_pick() {
    const Pick none = {0, -kInfinity, -kInfinity, kNoToken, kNoToken};
    return none;
}

DS4_FUNCTION bool wins(float score, int32_t token, float other_score, int32_t other_token) {
    return score > other_score || (score == other_score && token < other_token);
}

/// Merges two picks; the bits are the same whichever comes first.
DS4_FUNCTION Pick merged(Pick a, Pick b) {
    const bool first = wins(a.score, a.token, b.score, b.token);
    const bool plain_first = wins(a.plain_score, a.plain_token, b.plain_score, b.plain_token);
    const Pick both = {a.mass + b.mass, first ? a.score : b.score, plain_first ? a.plain_score : b.plain_score,
                       first ? a.token : b.token, plain_first ? a.plain_token : b.plain_token};
    return both;
}

DS4_FUNCTION Pick pick(float log_p, float log_q, float noise, int token) {
    const float rest = log_residual(log_p, log_q);
    const Pick one = {exp(rest), rest + noise, log_p + noise, token, token};
    return one;
}

/// The token that the picks of a whole row come to. A mass of at most 1e-8 is the rounding of a rejection that had no
/// greater probability: then the draw is from p, as on the host. The noise has no part in that choice.
DS4_FUNCTION int32_t picked(Pick all) { return all.mass <= 1e-8f ? all.plain_token : all.token; }
