#include "graph/inputs.h"

#include <algorithm>
#include <cmath>

#include "graph/fill.h"
#include "state/state.h"

namespace ds4::graph {
namespace {

using model::kCsaRatio;
using model::kHcaRatio;

RatioInputs create_ratio(const InputMaker& input, int ratio, const Shape& s) {
    RatioInputs r;
    const int64_t blocks = s.blocks(ratio);
    r.ape = input(GGML_TYPE_I32, s.rows);
    r.carry = input(GGML_TYPE_I64, std::min(s.rows, state::carry_capacity(ratio)));
    if (!blocks) return r;
    r.own = input(GGML_TYPE_I32, ratio * blocks);
    r.row = input(GGML_TYPE_I64, blocks);
    r.start = input(GGML_TYPE_I32, blocks);
    if (ratio == kCsaRatio) {
        r.previous = input(GGML_TYPE_I32, ratio * blocks);
        r.missing = input(GGML_TYPE_F32, 1, 2 * ratio, blocks);
    }
    return r;
}

QueryBlock create_queries(const InputMaker& input, const model::Hyperparameters& hp, const Shape& s, int64_t first) {
    QueryBlock q{first, std::min(kAttentionRows, s.rows - first)};
    const int64_t keys = hp.window + q.count;
    q.raw = input(GGML_TYPE_F32, keys, q.count);
    q.csa_mask = input(GGML_TYPE_F32, keys + s.csa_length, q.count);
    q.hca_mask = input(GGML_TYPE_F32, keys + s.hca_length, q.count);
    if (s.csa_length) q.csa_visible = input(GGML_TYPE_F16, s.csa_length, q.count);
    return q;
}

void fill_ratio(const RatioInputs& r, int ratio, const Shape& s, int64_t position) {
    const int64_t ring = state::carry_capacity(ratio), kept = std::min(s.rows, ring);
    const int64_t first_block = position / ratio;
    // Joined rows: ring slots for what was there before, own rows after them. Block -1 maps to any slot, masked.
    auto joined = [&](int64_t p) { return p < position ? mod(p, ring) : ring + p - position; };
    auto of_block = [&](int64_t i, int64_t shift) {
        return joined((first_block + i / ratio - shift) * ratio + i % ratio);
    };
    fill<int32_t>(r.ape, [&](int64_t i) { return (position + i) % ratio; });
    fill<int64_t>(r.carry, [&](int64_t i) { return (position + s.rows - kept + i) % ring; });
    fill<int32_t>(r.own, [&](int64_t i) { return of_block(i, 0); });
    fill<int32_t>(r.previous, [&](int64_t i) { return of_block(i, 1); });
    fill<float>(r.missing, [&](int64_t i) {
        return first_block + i / (2 * ratio) == 0 && i % (2 * ratio) < ratio ? -INFINITY : 0.0f;
    });
    fill<int64_t>(r.row, [&](int64_t i) { return first_block + i; });
    fill<int32_t>(r.start, [&](int64_t i) { return (first_block + i) * ratio; });
}

/// Mask of query rows over [window keys | compressed rows]; key c of a block stands for position first + c - W.
void fill_mask(ggml_tensor* t, const QueryBlock& q, int64_t window, int ratio, int64_t position) {
    if (!used(t)) return;
    const int64_t width = t->ne[0], keys = window + q.count, start = position + q.first;
    fill<float>(t, [&](int64_t i) {
        const int64_t row = i / width, key = i % width;
        const bool visible = key < keys ? key > row && key <= row + window && start + key - window >= 0
                                        : key - keys < (start + row + 1) / ratio;
        return visible ? 0.0f : -INFINITY;
    });
}

void fill_queries(const QueryBlock& q, int64_t window, int64_t position) {
    fill_mask(q.raw, q, window, 1, position);
    fill_mask(q.csa_mask, q, window, kCsaRatio, position);
    fill_mask(q.hca_mask, q, window, kHcaRatio, position);
    const ggml_fp16_t hidden = ggml_fp32_to_fp16(-INFINITY), shown = ggml_fp32_to_fp16(0);
    const int64_t width = used(q.csa_visible) ? q.csa_visible->ne[0] : 1;
    fill<ggml_fp16_t>(q.csa_visible, [&](int64_t i) {
        return i % width < (position + q.first + i / width + 1) / kCsaRatio ? shown : hidden;
    });
}

}  // namespace

Inputs create_inputs(ggml_context* ctx, const model::Hyperparameters& hp, const Shape& s, int device) {
    const InputMaker input{ctx, device};
    Inputs in;
    in.tokens = input(GGML_TYPE_I32, s.rows);
    in.positions = input(GGML_TYPE_I32, s.rows);
    in.inverse = input(GGML_TYPE_I32, s.rows);
    in.window = input(GGML_TYPE_I32, hp.window);
    in.ring = input(GGML_TYPE_I64, std::min(s.rows, state::raw_capacity(hp)));
    if (s.features) in.features = input(GGML_TYPE_I64, s.features);
    in.csa = create_ratio(input, kCsaRatio, s);
    in.hca = create_ratio(input, kHcaRatio, s);
    for (int64_t i = 0; i < s.rows; i += kAttentionRows) in.queries.push_back(create_queries(input, hp, s, i));
    return in;
}

void fill_inputs(const Inputs& in, const model::Hyperparameters& hp, const Shape& s, int64_t position,
                 std::span<const int32_t> tokens, int64_t feature_capacity) {
    const int64_t ring = state::raw_capacity(hp), kept = std::min(s.rows, ring);
    fill<int32_t>(in.tokens, [&](int64_t i) { return tokens[i]; });
    fill<int32_t>(in.positions, [&](int64_t i) { return position + i; });
    fill<int32_t>(in.inverse, [&](int64_t i) { return -(position + i); });
    fill<int32_t>(in.window, [&](int64_t i) { return mod(position - hp.window + i, ring); });
    fill<int64_t>(in.ring, [&](int64_t i) { return (position + s.rows - kept + i) % ring; });
    fill<int64_t>(in.features, [&](int64_t i) { return (position + s.rows - s.features + i) % feature_capacity; });
    fill_ratio(in.csa, kCsaRatio, s, position);
    fill_ratio(in.hca, kHcaRatio, s, position);
    for (const QueryBlock& q : in.queries) fill_queries(q, hp.window, position);
}

}  // namespace ds4::graph
