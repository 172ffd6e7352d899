// gumbel_noise.h for Metal kernels, and its sums over a threadgroup; as gpu/gumbel_noise.cuh. Included by the text of a
// kernel, after address_spaces.h and `using namespace metal`.

#define DS4_FUNCTION inline
constant constexpr float kInfinity = INFINITY;
inline uint high_bits_of_product(uint a, uint b) { return mulhi(a, b); }

#include "gumbel_noise.h"

inline NoiseKey noise_key(constant NoiseArguments& a) {
    const NoiseKey key = {a.seed_low, a.seed_high, a.counter_low, a.counter_high};
    return key;
}

/// Threads of a threadgroup, and of a simdgroup.
constant constexpr int kThreads = 256, kPart = 32, kParts = kThreads / kPart;

inline Candidate shuffled(Candidate c, ushort mask) {
    const Candidate other = {simd_shuffle_xor(c.max, mask), simd_shuffle_xor(c.sum, mask),
                             simd_shuffle_xor(c.score, mask), simd_shuffle_xor(c.token, mask)};
    return other;
}

inline Pick shuffled(Pick p, ushort mask) {
    const Pick other = {simd_shuffle_xor(p.mass, mask), simd_shuffle_xor(p.score, mask),
                        simd_shuffle_xor(p.plain_score, mask), simd_shuffle_xor(p.token, mask),
                        simd_shuffle_xor(p.plain_token, mask)};
    return other;
}

inline float shuffled(float x, ushort mask) { return simd_shuffle_xor(x, mask); }

/// Functions that merge two values in a reduction.
struct MergeCandidates {
    float scale;
    Candidate operator()(Candidate a, Candidate b) const { return merged(a, b, scale); }
};
struct MergePicks {
    Pick operator()(Pick a, Pick b) const { return merged(a, b); }
};
struct Add {
    float operator()(float a, float b) const { return a + b; }
};

/// Merges the values of a simdgroup; the result is the same for all its lanes.
template <typename T, typename Merge>
T over_part(T x, Merge merge) {
    for (int mask = kPart / 2; mask > 0; mask /= 2) x = merge(x, shuffled(x, ushort(mask)));
    return x;
}

/// Merges the values of all threads; the result is the same for every thread. `parts` has kParts elements.
template <typename T, typename Merge>
T over_block(T x, DS4_THREADGROUP(T) parts, int thread_index, Merge merge) {
    x = over_part(x, merge);
    threadgroup_barrier(mem_flags::mem_threadgroup);  // the array may be in use from before
    if (thread_index % kPart == 0) parts[thread_index / kPart] = x;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    T all = parts[0];
    for (int i = 1; i < kParts; i++) {
        const T part = parts[i];
        all = merge(all, part);
    }
    return all;
}
