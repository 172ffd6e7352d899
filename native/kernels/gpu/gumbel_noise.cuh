#pragma once
// Includes gumbel_noise.h for the kernels of this folder, and adds reductions over a block.

#include "gpu/simt.h"
#include "launcher.h"

#define DS4_FUNCTION DS4_DEVICE

namespace ds4::kernels::simt {

DS4_DEVICE uint32_t high_bits_of_product(uint32_t a, uint32_t b) {
    return static_cast<uint32_t>((static_cast<uint64_t>(a) * b) >> 32);
}

#include "gumbel_noise.h"

inline NoiseKey noise_key(const DrawKey& key) {
    return {static_cast<uint32_t>(key.seed), static_cast<uint32_t>(key.seed >> 32), static_cast<uint32_t>(key.counter),
            static_cast<uint32_t>(key.counter >> 32)};
}

/// The threads of a block, and of its parts, which are reduced by shuffles. Both sizes are independent of the wave, so
/// that the order of a sum, and with it every bit, is the same on all devices.
constexpr int kThreads = 256, kPart = 32, kParts = kThreads / kPart;

template <int kWave>
DS4_DEVICE Candidate shuffled(Candidate c, int mask) {
    return {shuffle_xor<kWave>(c.max, mask), shuffle_xor<kWave>(c.sum, mask), shuffle_xor<kWave>(c.score, mask),
            shuffle_xor<kWave>(c.token, mask)};
}

template <int kWave>
DS4_DEVICE Pick shuffled(Pick p, int mask) {
    return {shuffle_xor<kWave>(p.mass, mask), shuffle_xor<kWave>(p.score, mask),
            shuffle_xor<kWave>(p.plain_score, mask), shuffle_xor<kWave>(p.token, mask),
            shuffle_xor<kWave>(p.plain_token, mask)};
}

/// Functions that merge two values in a reduction.
struct MergeCandidates {
    float scale;
    DS4_DEVICE Candidate operator()(Candidate a, Candidate b) const { return merged(a, b, scale); }
};
struct MergePicks {
    DS4_DEVICE Pick operator()(Pick a, Pick b) const { return merged(a, b); }
};
struct Add {
    DS4_DEVICE float operator()(float a, float b) const { return a + b; }
};

template <int kWave>
DS4_DEVICE float shuffled(float x, int mask) {
    return shuffle_xor<kWave>(x, mask);
}

/// Merges the values of a part's threads; the result is the same for all of them.
template <int kWave, typename T, typename Merge>
DS4_DEVICE T over_part(T x, Merge merge) {
    DS4_UNROLL
    for (int mask = kPart / 2; mask > 0; mask /= 2) x = merge(x, shuffled<kWave>(x, mask));
    return x;
}

/// Merges the values of all threads of a block; the result is the same for every thread. `parts` has kParts elements.
template <int kWave, typename T, typename Merge>
DS4_DEVICE T over_block(T x, Shared<T> parts, Merge merge) {
    x = over_part<kWave>(x, merge);
    barrier();  // the array may be in use from before
    if (thread() % kPart == 0) parts[thread() / kPart] = x;
    barrier();
    T all = parts[0];
    DS4_UNROLL
    for (int i = 1; i < kParts; i++) {
        const T part = parts[i];
        all = merge(all, part);
    }
    return all;
}

/// Merges the candidates of one row that `count` blocks have left; the result is the same for every thread.
template <int kWave>
DS4_DEVICE Candidate over_blocks(Global<const Candidate> left, int count, Shared<Candidate> parts, float scale) {
    Candidate c = no_candidate();
    for (int i = thread(); i < count; i += kThreads) {
        const Candidate one = left[i];
        c = merged(c, one, scale);
    }
    return over_block<kWave>(c, parts, MergeCandidates{scale});
}

}  // namespace ds4::kernels::simt
