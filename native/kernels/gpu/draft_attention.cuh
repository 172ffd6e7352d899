#pragma once
// Attention of a draft block (launcher.h, DraftAttention). All heads and queries share the keys, which are also the
// values. A block of threads loads a few keys at a time into shared memory for kRows pairs of query and head, one wave
// for each pair. A wave keeps the components of a key in registers, and uses them for the logit and for the sum.
//
// The softmax is computed online, as in flash attention: a greater logit scales down the sums so far. It starts with
// the sink, whose logit is in the denominator and whose value is 0, so that the output of a row that sees no key is 0.

#include "gpu/limits.h"
#include "gpu/simt.h"

namespace ds4::kernels::DS4_PLATFORM {

/// kRows: pairs of query and head in a block, one for each wave. kKeys: keys in shared memory at a time; each wave
/// loads one. kTogether: keys that a wave processes at once, so that the latencies of their reductions overlap.
constexpr int kRows = 8, kKeys = kRows, kTogether = 4;
template <typename Ring>
struct DraftAttentionArguments {
    simt::Global<const float> q;      // [size, heads, n]
    simt::Global<const Ring> ring;    // [size, capacity]
    simt::Global<const float> block;  // [size, n]
    simt::Global<const float> mask;   // [capacity + n, n]
    simt::Global<const float> sinks;  // [heads]
    simt::Global<float> out;          // [size, heads, n]
    int size, heads, n, capacity;
    float scale;
};

/// The state of a pair of query and head. Lane l of its wave holds the components l, l + kWave, ... of query and sum.
template <int kWave>
struct AttentionRow {
    static constexpr int kParts = kLargestHeadSize / kWave;
    float q[kParts], sum[kParts];
    float largest, total;  // of the logits; of exp(logit - largest)
};

/// Returns component i of key k. The keys of the ring come first, then those of the block.
template <typename Ring>
DS4_DEVICE float key_component(const DraftAttentionArguments<Ring>& a, int k, int i) {
    if (k < a.capacity) return simt::to_float(a.ring[static_cast<int64_t>(k) * a.size + i]);
    return a.block[(k - a.capacity) * a.size + i];
}

/// Copies the keys from `first` on into the tile, one for each wave. Loads precede all stores, so that they overlap.
template <int kWave, typename Ring>
DS4_DEVICE void bring_keys(const DraftAttentionArguments<Ring>& a, simt::Shared<float> tile, int first) {
    const int own = simt::wave<kWave>();
    if (first + own >= a.capacity + a.n) return;
    float parts[kLargestHeadSize / kWave];
    DS4_UNROLL
    for (int p = 0; p < kLargestHeadSize / kWave; p++) {
        const int i = p * kWave + simt::lane<kWave>();
        if (i < a.size) parts[p] = key_component(a, first + own, i);
    }
    DS4_UNROLL
    for (int p = 0; p < kLargestHeadSize / kWave; p++) {
        const int i = p * kWave + simt::lane<kWave>();
        if (i < a.size) tile[own * kLargestHeadSize + i] = parts[p];
    }
}

/// Returns the mask's addend to the logit of key k for this query; -inf past the last key.
template <typename Ring>
DS4_DEVICE float masked(const DraftAttentionArguments<Ring>& a, int query, int k) {
    const int keys = a.capacity + a.n;
    return k < keys ? a.mask[query * keys + k] : -simt::kInfinity;
}

/// Returns the dot product of the query and a key, and copies the key's components to `parts`. A key that is not `seen`
/// counts as 0, since its memory may hold anything.
template <int kWave>
DS4_DEVICE float logit(const AttentionRow<kWave>& row, simt::Shared<float> key, int size, bool seen,
                       float (&parts)[AttentionRow<kWave>::kParts]) {
    float dot = 0;
    DS4_UNROLL
    for (int p = 0; p < AttentionRow<kWave>::kParts; p++) {
        const int i = p * kWave + simt::lane<kWave>();
        parts[p] = 0;
        if (seen && i < size) parts[p] = key[i];
        dot = simt::fma(row.q[p], parts[p], dot);
    }
    return simt::wave_sum<kWave>(dot);
}

/// Adds kTogether keys of the tile to the softmax and the sum of a row.
template <int kWave>
DS4_DEVICE void take_keys(AttentionRow<kWave>& row, simt::Shared<float> keys, int size, float scale,
                          const float (&mask)[kTogether]) {
    constexpr int kParts = AttentionRow<kWave>::kParts;
    float parts[kTogether][kParts], logits[kTogether];
    float largest = row.largest;
    DS4_UNROLL
    for (int k = 0; k < kTogether; k++) {
        const float product =
            logit<kWave>(row, keys + k * kLargestHeadSize, size, mask[k] > -simt::kInfinity, parts[k]);
        logits[k] = product * scale + mask[k];
        largest = simt::maximum(largest, logits[k]);
    }
    const float kept = simt::exp(row.largest - largest);
    row.largest = largest;
    row.total *= kept;
    DS4_UNROLL
    for (int p = 0; p < kParts; p++) row.sum[p] *= kept;
    DS4_UNROLL
    for (int k = 0; k < kTogether; k++) {
        const float weight = simt::exp(logits[k] - largest);
        row.total += weight;
        DS4_UNROLL
        for (int p = 0; p < kParts; p++) row.sum[p] = simt::fma(weight, parts[k][p], row.sum[p]);
    }
}

template <int kWave, typename Ring>
DS4_DEVICE void begin_row(AttentionRow<kWave>& row, const DraftAttentionArguments<Ring>& a, int pair) {
    DS4_UNROLL
    for (int p = 0; p < AttentionRow<kWave>::kParts; p++) {
        const int i = p * kWave + simt::lane<kWave>();
        row.q[p] = 0;
        if (i < a.size) row.q[p] = a.q[static_cast<int64_t>(pair) * a.size + i];
        row.sum[p] = 0;
    }
    row.largest = a.sinks[pair % a.heads];
    row.total = 1;
}

template <int kWave, typename Ring>
DS4_DEVICE void end_row(const AttentionRow<kWave>& row, const DraftAttentionArguments<Ring>& a, int pair) {
    DS4_UNROLL
    for (int p = 0; p < AttentionRow<kWave>::kParts; p++) {
        const int i = p * kWave + simt::lane<kWave>();
        if (i < a.size) a.out[static_cast<int64_t>(pair) * a.size + i] = row.sum[p] / row.total;
    }
}

template <int kWave, typename Ring>
DS4_KERNEL(kRows* kWave)
void draft_attention(DraftAttentionArguments<Ring> a) {
    DS4_SHARED(float, tile, kKeys* kLargestHeadSize);
    const int pairs = a.heads * a.n, keys = a.capacity + a.n;
    // A wave without a pair computes the last one again, since it has to load keys. It writes nothing.
    const int own = simt::block() * kRows + simt::wave<kWave>(), pair = own < pairs ? own : pairs - 1;
    AttentionRow<kWave> row;
    begin_row<kWave>(row, a, pair);
    for (int first = 0; first < keys; first += kKeys) {
        simt::barrier();
        bring_keys<kWave>(a, tile, first);
        simt::barrier();
        for (int k = 0; k < kKeys && first + k < keys; k += kTogether) {
            float mask[kTogether];
            DS4_UNROLL
            for (int i = 0; i < kTogether; i++) mask[i] = masked(a, pair / a.heads, first + k + i);
            take_keys<kWave>(row, tile + k * kLargestHeadSize, a.size, a.scale, mask);
        }
    }
    if (own < pairs) end_row<kWave>(row, a, pair);
}

template <int kWave, typename Ring, typename Device>
void launch_draft_attention(Device& device, const DraftAttention& w) {
    const DraftAttentionArguments<Ring> a{w.q,     static_cast<const Ring*>(w.ring.data),
                                          w.block, w.mask,
                                          w.sinks, w.out,
                                          w.size,  w.heads,
                                          w.n,     w.ring.rows,
                                          w.scale};
    const int blocks = (w.heads * w.n + kRows - 1) / kRows;
    device.launch("draft_attention", draft_attention<kWave, Ring>, blocks, kRows * kWave, a);
}

/// Launches the kernel for the type of the ring. Throws BackendError for work that the kernels do not support.
template <int kWave, typename Device>
void launch(Device& device, const DraftAttention& work) {
    require_draft_attention(work);
    if (work.ring.type == Element::f16) return launch_draft_attention<kWave, simt::Half>(device, work);
    launch_draft_attention<kWave, float>(device, work);
}

}  // namespace ds4::kernels::DS4_PLATFORM
