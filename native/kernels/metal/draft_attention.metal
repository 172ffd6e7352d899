// Attention of a draft block (launcher.h, DraftAttention); as gpu/draft_attention.cuh, which says how it goes.

#include <metal_stdlib>

#include "metal/address_spaces.h"
#include "metal/arguments.h"

using namespace metal;

/// Pairs of query and head of a threadgroup, a simdgroup each; keys in threadgroup memory at a time; keys that a
/// simdgroup takes together; the largest head, and its components in each lane.
constant constexpr int kLanes = 32;
constant constexpr int kRows = 8, kKeys = kRows, kTogether = 4;
constant constexpr int kLargest = 512, kParts = kLargest / kLanes;

struct Row {
    float q[kParts], sum[kParts];
    float largest, total;
};

/// Brings keys from `first` on to the tile, each simdgroup one: the ring's and, past them, the block's own.
template <typename Ring>
void bring_keys(DS4_GLOBAL(const Ring) ring, DS4_GLOBAL(const float) block, constant DraftAttentionArguments& a,
                DS4_THREADGROUP(float) tile, int first, int own, int lane) {
    const int key = first + own;
    if (key >= a.capacity + a.n) return;
    for (int i = lane; i < a.size; i += kLanes) {
        float x = 0;
        if (key < a.capacity) {
            x = float(ring[key * a.size + i]);
        } else {
            x = block[(key - a.capacity) * a.size + i];
        }
        tile[own * kLargest + i] = x;
    }
}

/// The row's logit of a key; 0 in place of a key that is not seen, which may be anything.
inline float logit(DS4_OWN(const Row) row, DS4_THREADGROUP(float) key, int size, bool seen, int lane,
                   DS4_OWN(float) parts) {
    float dot = 0;
    for (int p = 0; p < kParts; p++) {
        const int i = p * kLanes + lane;
        parts[p] = 0;
        if (seen && i < size) parts[p] = key[i];
        dot = fma(row->q[p], parts[p], dot);
    }
    return simd_sum(dot);
}

/// Takes kTogether keys into the row.
inline void take_keys(DS4_OWN(Row) row, DS4_THREADGROUP(float) keys, int size, float scale, int lane,
                      DS4_OWN(const float) mask) {
    float parts[kTogether][kParts];
    float logits[kTogether];
    float largest = row->largest;
    for (int k = 0; k < kTogether; k++) {
        const float product = logit(row, keys + k * kLargest, size, mask[k] > -INFINITY, lane, parts[k]);
        logits[k] = product * scale + mask[k];
        largest = max(largest, logits[k]);
    }
    const float kept = exp(row->largest - largest);
    row->largest = largest;
    row->total *= kept;
    for (int p = 0; p < kParts; p++) row->sum[p] *= kept;
    for (int k = 0; k < kTogether; k++) {
        const float weight = exp(logits[k] - largest);
        row->total += weight;
        for (int p = 0; p < kParts; p++) row->sum[p] = fma(weight, parts[k][p], row->sum[p]);
    }
}

template <typename Ring>
void attend(DS4_GLOBAL(const float) q, DS4_GLOBAL(const Ring) ring, DS4_GLOBAL(const float) block,
            DS4_GLOBAL(const float) mask, DS4_GLOBAL(const float) sinks, DS4_GLOBAL(float) out,
            constant DraftAttentionArguments& a, DS4_THREADGROUP(float) tile, int index, int group) {
    const int lane = index % kLanes, own = index / kLanes;
    const int pairs = a.heads * a.n, keys = a.capacity + a.n;
    // A simdgroup without a pair of its own repeats the last one, since it helps to bring keys; it writes nothing.
    const int pair = min(group * kRows + own, pairs - 1);
    Row row;
    for (int p = 0; p < kParts; p++) {
        const int i = p * kLanes + lane;
        row.q[p] = 0;
        if (i < a.size) row.q[p] = q[pair * a.size + i];
        row.sum[p] = 0;
    }
    row.largest = sinks[pair % a.heads];
    row.total = 1;
    for (int first = 0; first < keys; first += kKeys) {
        threadgroup_barrier(mem_flags::mem_threadgroup);
        bring_keys(ring, block, a, tile, first, own, lane);
        threadgroup_barrier(mem_flags::mem_threadgroup);
        for (int k = 0; k < kKeys && first + k < keys; k += kTogether) {
            float added[kTogether];
            for (int i = 0; i < kTogether; i++) {
                const int key = first + k + i;
                added[i] = -INFINITY;
                if (key < keys) added[i] = mask[pair / a.heads * keys + key];
            }
            take_keys(&row, tile + k * kLargest, a.size, a.scale, lane, added);
        }
    }
    if (group * kRows + own >= pairs) return;
    for (int p = 0; p < kParts; p++) {
        const int i = p * kLanes + lane;
        if (i < a.size) out[pair * a.size + i] = row.sum[p] / row.total;
    }
}

kernel void draft_attention_f32(DS4_GLOBAL(const float) q [[buffer(0)]], DS4_GLOBAL(const float) ring [[buffer(1)]],
                                DS4_GLOBAL(const float) block [[buffer(2)]], DS4_GLOBAL(const float) mask [[buffer(3)]],
                                DS4_GLOBAL(const float) sinks [[buffer(4)]], DS4_GLOBAL(float) out [[buffer(5)]],
                                constant DraftAttentionArguments& a [[buffer(6)]],
                                uint index [[thread_index_in_threadgroup]],
                                uint group [[threadgroup_position_in_grid]]) {
    DS4_SHARED(float, tile, kKeys* kLargest);
    attend<float>(q, ring, block, mask, sinks, out, a, tile, int(index), int(group));
}

kernel void draft_attention_f16(DS4_GLOBAL(const float) q [[buffer(0)]], DS4_GLOBAL(const half) ring [[buffer(1)]],
                                DS4_GLOBAL(const float) block [[buffer(2)]], DS4_GLOBAL(const float) mask [[buffer(3)]],
                                DS4_GLOBAL(const float) sinks [[buffer(4)]], DS4_GLOBAL(float) out [[buffer(5)]],
                                constant DraftAttentionArguments& a [[buffer(6)]],
                                uint index [[thread_index_in_threadgroup]],
                                uint group [[threadgroup_position_in_grid]]) {
    DS4_SHARED(float, tile, kKeys* kLargest);
    attend<half>(q, ring, block, mask, sinks, out, a, tile, int(index), int(group));
}
