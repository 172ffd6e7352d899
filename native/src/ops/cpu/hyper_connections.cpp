#include <array>
#include <cmath>

#include "cpu/packing.h"
#include "ops/cpu/nodes.h"

namespace ds4::ops::cpu {
namespace {

/// Columns of flattened streams, or of one, that are one piece of work. fn has so few tiles that its columns are shared
/// out, too; their sums are added in order.
constexpr int64_t kColumns = 512;

int64_t pieces(int64_t columns) { return (columns + kColumns - 1) / kColumns; }

/// The sums of each row: what a piece of its flattened streams adds to fn x and, last, to the sum of squares:
/// [mix + 1, pieces, n].
void measure(ggml_tensor* out, int ith, int nth, void*) {
    const ggml_tensor *w = out->src[0], *x = out->src[1];
    const kernels::Matrix fn = kernels::packed_of(w)->matrix(w, 0);
    const size_t column = kernels::tile_bytes(fn.format, 1), tile = kernels::tile_bytes(fn.format, fn.columns);
    const Part part(out->ne[1], ith, nth);
    for (int64_t piece = part.first; piece < part.last; piece++) {
        const int64_t first = piece * kColumns, columns = std::min(kColumns, fn.columns - first);
        const kernels::Rows rows{static_cast<const float*>(x->data) + first, x->nb[2], x->ne[2]};
        float* to = row<float>(out, piece);
        for (int64_t done = 0; done < fn.rows; done += kernels::kTile) {
            const auto* data = static_cast<const char*>(fn.data) + done / kernels::kTile * tile + first * column;
            kernels().matmul({fn.format, columns, std::min(kernels::kTile, fn.rows - done), data}, rows, 0, 1,
                             {to + done, out->ne[0] * out->ne[1]});
        }
        for (int64_t i = 0; i < x->ne[2]; i++) {
            row<float>(out, piece, i)[fn.rows] = kernels().squares(row(x, 0, i) + first, columns);
        }
    }
}

/// fn . RMS(flatten(X)), (M2) and (M3), of row i.
void finish_mix(const ggml_tensor* measured, int64_t i, int64_t columns, float epsilon, float* m) {
    const int64_t count = measured->ne[0] - 1;
    float squares = 0;
    std::fill_n(m, count, 0.0f);
    for (int64_t piece = 0; piece < measured->ne[1]; piece++) {
        const float* from = row(measured, piece, i);
        for (int64_t k = 0; k < count; k++) m[k] += from[k];
        squares += from[count];
    }
    const float scale = 1 / std::sqrt(squares / static_cast<float>(columns) + epsilon);
    for (int64_t k = 0; k < count; k++) m[k] *= scale;
}

float sigmoid(float x) { return 1 / (1 + std::exp(-x)); }

/// Divides lines of c, whose elements are `step` apart, by their sums.
void normalise(float* c, int64_t streams, int64_t line, int64_t step, float epsilon) {
    for (int64_t i = 0; i < streams; i++) {
        float sum = epsilon;
        for (int64_t k = 0; k < streams; k++) sum += c[i * line + k * step];
        for (int64_t k = 0; k < streams; k++) c[i * line + k * step] /= sum;
    }
}

/// (M7) of c [source][destination], in place.
void sinkhorn(float* c, int64_t streams, const HcOptions& options) {
    for (int64_t a = 0; a < streams; a++) {
        float* from = c + a * streams;
        const float most = *std::max_element(from, from + streams);
        float sum = 0;
        for (int64_t k = 0; k < streams; k++) sum += from[k] = std::exp(from[k] - most);
        for (int64_t k = 0; k < streams; k++) from[k] = from[k] / sum + options.epsilon;
    }
    normalise(c, streams, 1, streams, options.epsilon);
    for (int32_t i = 1; i < options.sinkhorn_iterations; i++) {
        normalise(c, streams, streams, 1, options.epsilon);
        normalise(c, streams, 1, streams, options.epsilon);
    }
}

/// (M4)-(M7) in place of m.
void open_gates(float* m, const float* scale, const float* base, int64_t streams, const HcOptions& options) {
    for (int64_t k = 0; k < streams * (streams + 2); k++)
        m[k] = m[k] * scale[std::min<int64_t>(k / streams, 2)] + base[k];
    for (int64_t s = 0; s < streams; s++) m[s] = sigmoid(m[s]) + options.epsilon;
    for (int64_t s = streams; s < 2 * streams; s++) m[s] = 2 * sigmoid(m[s]);
    sinkhorn(m + 2 * streams, streams, options);
}

/// h of all rows, then pre, post and comb of each.
void open(ggml_tensor* out, int ith, int nth, void*) {
    const ggml_tensor *measured = out->src[0], *x = out->src[1], *scale = out->src[2], *base = out->src[3],
                      *norm = out->src[4];
    const auto options = options_of<HcOptions>(out);
    const int64_t hidden = x->ne[0], streams = x->ne[1], n = x->ne[2];
    auto* data = static_cast<float*>(out->data);
    const Part part(n, ith, nth);
    for (int64_t i = part.first; i < part.last; i++) {
        float* m = data + n * hidden + i * base->ne[0];
        finish_mix(measured, i, hidden * streams, options.norm_epsilon, m);
        open_gates(m, row(scale, 0), row(base, 0), streams, options);
        std::array<const float*, kMostStreams> sources;
        for (int64_t s = 0; s < streams; s++) sources[s] = row(x, s, i);
        float* h = data + i * hidden;
        kernels().weighted_sum(sources.data(), m, streams, hidden, h);
        kernels().rms_norm(h, row(norm, 0), hidden, options.norm_epsilon, h);
    }
}

/// (M10): pieces of all rows are shared out in one sequence.
void expand(ggml_tensor* out, int ith, int nth, void*) {
    const ggml_tensor *y = out->src[0], *x = out->src[1], *post = out->src[2], *comb = out->src[3];
    const int64_t hidden = x->ne[0], streams = x->ne[1], each = pieces(hidden);
    const Part part(each * x->ne[2], ith, nth);
    for (int64_t piece = part.first; piece < part.last; piece++) {
        const int64_t i = piece / each, first = piece % each * kColumns, columns = std::min(kColumns, hidden - first);
        std::array<const float*, kMostStreams + 1> sources{row(y, i) + first};
        for (int64_t a = 0; a < streams; a++) sources[1 + a] = row(x, a, i) + first;
        for (int64_t to = 0; to < streams; to++) {
            std::array<float, kMostStreams + 1> weights{row(post, i)[to]};
            for (int64_t a = 0; a < streams; a++) weights[1 + a] = row(comb, a, i)[to];
            kernels().weighted_sum(sources.data(), weights.data(), 1 + streams, columns,
                                   row<float>(out, to, i) + first);
        }
    }
}

}  // namespace

HcInput hc_open(const Build& b, ggml_tensor* x, const HcWeights& w, ggml_tensor* norm, const HcOptions& options) {
    const int64_t hidden = x->ne[0], streams = x->ne[1], n = x->ne[2], mix = w.base->ne[0];
    ggml_tensor* measured = node(b, GGML_TYPE_F32, {mix + 1, pieces(hidden * streams), n}, {w.fn, x}, measure);
    ggml_tensor* all =
        node(b, GGML_TYPE_F32, {(hidden + mix) * n}, {measured, x, w.scale, w.base, norm}, open, options);
    const size_t f = sizeof(float), mixes = n * hidden * f;
    const auto gates = [&](int64_t first) { return ggml_view_2d(b.ctx, all, streams, n, mix * f, mixes + first * f); };
    ggml_tensor* comb = ggml_view_3d(b.ctx, all, streams, streams, n, streams * f, mix * f, mixes + 2 * streams * f);
    return {ggml_view_2d(b.ctx, all, hidden, n, hidden * f, 0), {gates(0), gates(streams), comb}};
}

ggml_tensor* hc_expand(const Build& b, ggml_tensor* y, ggml_tensor* x, const HcMix& mix) {
    return node(b, GGML_TYPE_F32, {x->ne[0], x->ne[1], x->ne[2]}, {y, x, mix.post, mix.comb}, expand);
}

}  // namespace ds4::ops::cpu
