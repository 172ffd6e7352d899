// The heads of a draft block (launcher.h, MarkovHead); as gpu/markov.cuh, which says how it goes.

#include <metal_stdlib>

#include "metal/address_spaces.h"
#include "metal/arguments.h"

using namespace metal;

#include "metal/gumbel_threadgroup.h"

/// Q8_0's block of 32 columns in words of 16 bits: the scale, a half, then the columns, two a word.
constant constexpr int kBlockColumns = 32, kBlockWords = 17;

inline float half_at(ushort word) { return float(as_type<half>(word)); }
inline float bfloat_at(ushort word) { return as_type<float>(uint(word) << 16); }
inline float low_byte(ushort word) { return float(int8_t(word & 0xff)); }
inline float high_byte(ushort word) { return float(int8_t(word >> 8)); }

/// An element of a matrix whose type is known when the kernel runs, for single rows.
inline float any_element(DS4_GLOBAL(const ushort) words, int type, int columns, int row, int column) {
    const int i = row * columns + column;
    if (type == kElementF32) {
        const ushort low = words[2 * i], high = words[2 * i + 1];
        return as_type<float>(uint(high) << 16 | uint(low));
    }
    const int block = i / kBlockColumns * kBlockWords, within = column % kBlockColumns;
    const ushort word = words[type == kElementQ8 ? block : i];
    if (type == kElementF16) return half_at(word);
    if (type == kElementBf16) return bfloat_at(word);
    const ushort pair = words[block + 1 + within / 2];
    return half_at(word) * (within % 2 ? high_byte(pair) : low_byte(pair));
}

/// Lanes that read a row together, and the most columns of each; as gpu/weights.cuh.
constant constexpr int kRowLanes = 16, kOwn = 16;

/// Converts the stored words of a type to floats.
struct HalfWords {
    static float number(ushort x) { return half_at(x); }
};
struct BfloatWords {
    static float number(ushort x) { return bfloat_at(x); }
};
struct Floats {
    static float number(float x) { return x; }
};

/// Columns in fours, which a row's start must be aligned to.
template <typename Kind, typename T>
struct Fours {
    static int column(int i, int lane) { return i / 4 * 4 * kRowLanes + 4 * lane + i % 4; }
    static float dot(DS4_GLOBAL(const T) w, int row, int columns, int lane, DS4_OWN(const float) x) {
        float sum = 0;
        for (int i = 0; i < kOwn; i += 4) {
            const int first = column(i, lane);
            const T four = w[(row * columns + (first < columns ? first : columns - 4)) / 4];
            sum = fma(Kind::number(four.x), x[i],
                      fma(Kind::number(four.y), x[i + 1],
                          fma(Kind::number(four.z), x[i + 2], fma(Kind::number(four.w), x[i + 3], sum))));
        }
        return sum;
    }
};

/// Columns one by one, where rows have no such alignment.
template <typename Kind, typename T>
struct Ones {
    static int column(int i, int lane) { return i * kRowLanes + lane; }
    static float dot(DS4_GLOBAL(const T) w, int row, int columns, int lane, DS4_OWN(const float) x) {
        float sum = 0;
        for (int i = 0; i < kOwn; i++) {
            const int own = column(i, lane);
            const T weight = w[row * columns + (own < columns ? own : columns - 1)];
            sum = fma(Kind::number(weight), x[i], sum);
        }
        return sum;
    }
};

/// Q8_0: a word of every block.
struct Blocks {
    static int column(int i, int lane) { return i / 2 * kBlockColumns + 2 * lane + i % 2; }
    static float dot(DS4_GLOBAL(const ushort) w, int row, int columns, int lane, DS4_OWN(const float) x) {
        const int blocks = columns / kBlockColumns;
        float sum = 0;
        for (int i = 0; i < kOwn; i += 2) {
            const int block = (row * blocks + (i / 2 < blocks ? i / 2 : blocks - 1)) * kBlockWords;
            const ushort scale = w[block], pair = w[block + 1 + lane];
            sum = fma(half_at(scale), fma(low_byte(pair), x[i], high_byte(pair) * x[i + 1]), sum);
        }
        return sum;
    }
};

/// What the launches of a block leave for each other, and bring out.
struct Results {
    DS4_GLOBAL(Candidate) left;  // [pieces, block]
    DS4_GLOBAL(int) tokens;      // [block]
    DS4_GLOBAL(float) log_sum;   // [block]
};

/// The token of a position whose launch is over, from what its threadgroups left; one thread writes it down.
inline int settled(Results r, constant MarkovArguments& a, int position, DS4_THREADGROUP(Candidate) parts, int index,
                   int group) {
    Candidate c = no_candidate();
    for (int i = index; i < a.pieces; i += kThreads) {
        const Candidate one = r.left[position * a.pieces + i];
        c = merged(c, one, a.scale);
    }
    const MergeCandidates merge = {a.scale};
    const Candidate all = over_block(c, parts, index, merge);
    const int token = all.token == kNoToken ? 0 : all.token;  // all NaN; the next row is read all the same
    if (group == 0 && index == 0) {
        r.tokens[position] = token;
        r.log_sum[position] = fma(all.max, a.scale, log(all.sum));
    }
    return token;
}

/// Writes what W2 adds to the logits of kThreads tokens from `first` on, after `token`, into `biases`.
template <typename Reader, typename T>
void add_rows(DS4_GLOBAL(const ushort) embedding, DS4_GLOBAL(const T) output, constant MarkovArguments& a, int token,
              int first, DS4_THREADGROUP(float) biases, int index) {
    const int lane = index % kRowLanes;
    float x[kOwn];
    for (int i = 0; i < kOwn; i++) {
        const int column = Reader::column(i, lane);
        x[i] = 0;
        if (column < a.rank) x[i] = any_element(embedding, a.embedding_type, a.rank, token, column);
    }
    for (int row = index / kRowLanes; row < kThreads; row += kThreads / kRowLanes) {
        float dot = Reader::dot(output, min(first + row, a.vocab - 1), a.rank, lane, x);
        for (int mask = kRowLanes / 2; mask > 0; mask /= 2) dot += simd_shuffle_xor(dot, ushort(mask));
        if (lane == 0) biases[row] = dot;
    }
}

template <typename Reader, typename T>
void position_step(DS4_GLOBAL(const float) base, DS4_GLOBAL(const int) anchor, DS4_GLOBAL(const ushort) embedding,
                   DS4_GLOBAL(const T) output, Results r, DS4_GLOBAL(float) logits, constant MarkovArguments& a,
                   DS4_THREADGROUP(Candidate) parts, DS4_THREADGROUP(float) biases, int index, int group) {
    const int first = group * kThreads, token = first + index;
    int before = 0;
    if (a.position) {
        before = settled(r, a, a.position - 1, parts, index, group);
    } else if (a.rank) {
        before = anchor[0];
    }
    if (a.rank) add_rows<Reader, T>(embedding, output, a, before, first, biases, index);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    Candidate c = no_candidate();
    if (token < a.vocab) {
        float logit = base[a.position * a.vocab + token];
        if (a.rank) logit += biases[index];
        logits[a.position * a.vocab + token] = logit;
        float noise = 0;
        if (a.draws) noise = gumbel(noise_key(a.key), kProposal, a.position, token);
        c = candidate(logit, noise, token);
    }
    const MergeCandidates merge = {a.scale};
    c = over_block(c, parts, index, merge);
    if (index == 0) r.left[a.position * a.pieces + group] = c;
}

#define POSITION(name, reader, type)                                                                                \
    kernel void name(DS4_GLOBAL(const float) base [[buffer(0)]], DS4_GLOBAL(const int) anchor [[buffer(1)]],        \
                     DS4_GLOBAL(const ushort) embedding [[buffer(2)]], DS4_GLOBAL(const type) output [[buffer(3)]], \
                     DS4_GLOBAL(Candidate) left [[buffer(4)]], DS4_GLOBAL(int) tokens [[buffer(5)]],                \
                     DS4_GLOBAL(float) logits [[buffer(6)]], DS4_GLOBAL(float) log_sum [[buffer(7)]],               \
                     constant MarkovArguments& a [[buffer(8)]], uint index [[thread_index_in_threadgroup]],         \
                     uint group [[threadgroup_position_in_grid]]) {                                                 \
        DS4_SHARED(Candidate, parts, kParts);                                                                       \
        DS4_SHARED(float, biases, kThreads);                                                                        \
        const Results r = {left, tokens, log_sum};                                                                  \
        position_step<reader, type>(base, anchor, embedding, output, r, logits, a, parts, biases, int(index),       \
                                    int(group));                                                                    \
    }

// Template arguments with commas, as names.
typedef Fours<Floats, float4> F32Fours;
typedef Fours<HalfWords, ushort4> F16Fours;
typedef Fours<BfloatWords, ushort4> Bf16Fours;
typedef Ones<Floats, float> F32Ones;
typedef Ones<HalfWords, ushort> F16Ones;
typedef Ones<BfloatWords, ushort> Bf16Ones;

POSITION(markov_position_f32x4, F32Fours, float4)
POSITION(markov_position_f16x4, F16Fours, ushort4)
POSITION(markov_position_bf16x4, Bf16Fours, ushort4)
POSITION(markov_position_f32, F32Ones, float)
POSITION(markov_position_f16, F16Ones, ushort)
POSITION(markov_position_bf16, Bf16Ones, ushort)
POSITION(markov_position_q8_0, Blocks, ushort)

#undef POSITION

/// What the confidence head reads.
struct Confident {
    DS4_GLOBAL(const int) anchor;
    DS4_GLOBAL(const ushort) embedding;
    DS4_GLOBAL(const float) hidden;
    DS4_GLOBAL(const ushort) confidence;
    DS4_GLOBAL(int) tokens;
};

/// The sum of a position's head, of the hidden row and of W1's row of the token before where the head reads it.
inline float head_sum(Confident c, constant MarkovArguments& a, int position, DS4_THREADGROUP(float) parts, int index) {
    float sum = 0;
    for (int i = index; i < a.confidence_columns; i += kThreads) {
        float x;
        if (i < a.hidden_size) {
            x = c.hidden[position * a.hidden_size + i];
        } else {
            int before;
            if (position) {
                before = c.tokens[position - 1];
            } else {
                before = c.anchor[0];
            }
            x = any_element(c.embedding, a.embedding_type, a.rank, before, i - a.hidden_size);
        }
        sum = fma(any_element(c.confidence, a.confidence_type, a.confidence_columns, 0, i), x, sum);
    }
    return over_block(sum, parts, index, Add());
}

/// The last position's token, and the confidences of all.
kernel void markov_end(DS4_GLOBAL(const int) anchor [[buffer(0)]], DS4_GLOBAL(const ushort) embedding [[buffer(1)]],
                       DS4_GLOBAL(const float) hidden [[buffer(2)]], DS4_GLOBAL(const ushort) weights [[buffer(3)]],
                       DS4_GLOBAL(const float) bias [[buffer(4)]], DS4_GLOBAL(Candidate) left [[buffer(5)]],
                       DS4_GLOBAL(int) tokens [[buffer(6)]], DS4_GLOBAL(float) log_sum [[buffer(7)]],
                       DS4_GLOBAL(float) confidences [[buffer(8)]], constant MarkovArguments& a [[buffer(9)]],
                       uint thread_index [[thread_index_in_threadgroup]],
                       uint group_index [[threadgroup_position_in_grid]]) {
    DS4_SHARED(Candidate, parts, kParts);
    DS4_SHARED(float, sums, kParts);
    const int index = int(thread_index), group = int(group_index);
    const Results r = {left, tokens, log_sum};
    if (group == 0) settled(r, a, a.block - 1, parts, index, group);
    if (!a.confidence_columns) return;
    const Confident c = {anchor, embedding, hidden, weights, tokens};
    float sum = head_sum(c, a, group, sums, index);
    if (a.has_bias) sum += bias[0];
    if (index == 0) confidences[group] = 1 / (1 + exp(-sum));
}
