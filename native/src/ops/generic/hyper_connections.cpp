#include "ops/generic/nodes.h"

namespace ds4::ops {
namespace {

/// fn . RMS(flatten(X)), (M2) and (M3): [mix, n].
ggml_tensor* mixes(const Build& b, ggml_tensor* x, ggml_tensor* fn, float norm_epsilon) {
    ggml_tensor* flat = ggml_reshape_2d(b.ctx, x, x->ne[0] * x->ne[1], x->ne[2]);
    return matmul(b, fn, ggml_rms_norm(b.ctx, flat, norm_epsilon));
}

/// sigmoid(m[first .. first+count) * scale[index] + base[first ..)): [count, n].
ggml_tensor* gate(const Build& b, ggml_tensor* m, const HcWeights& w, int64_t first, int64_t count, int64_t index) {
    const size_t f = sizeof(float);
    ggml_tensor* part = ggml_view_2d(b.ctx, m, count, m->ne[1], m->nb[1], first * f);
    ggml_tensor* scale = ggml_view_1d(b.ctx, w.scale, 1, index * f);
    ggml_tensor* base = ggml_view_1d(b.ctx, w.base, count, first * f);
    return ggml_sigmoid(b.ctx, ggml_add(b.ctx, ggml_mul(b.ctx, part, scale), base));
}

}  // namespace

HcMix hc_mix(const Build& b, ggml_tensor* x, const HcWeights& w, const HcOptions& o) {
    const int64_t streams = x->ne[1];
    ggml_tensor* m = mixes(b, x, w.fn, o.norm_epsilon);
    HcMix mix;
    mix.pre = ggml_scale_bias(b.ctx, gate(b, m, w, 0, streams, 0), 1, o.epsilon);
    mix.post = ggml_scale(b.ctx, gate(b, m, w, streams, streams, 1), 2);
    mix.comb = ggml_dsv4_hc_comb(b.ctx, m, w.scale, w.base, o.epsilon, o.sinkhorn_iterations);
    return mix;
}

HcMix hc_head_mix(const Build& b, ggml_tensor* x, const HcWeights& w, const HcOptions& o) {
    ggml_tensor* m = mixes(b, x, w.fn, o.norm_epsilon);
    return {ggml_scale_bias(b.ctx, gate(b, m, w, 0, x->ne[1], 0), 1, o.epsilon), nullptr, nullptr};
}

ggml_tensor* hc_collapse(const Build& b, ggml_tensor* x, ggml_tensor* pre) { return ggml_dsv4_hc_pre(b.ctx, x, pre); }

HcInput generic::hc_open(const Build& b, ggml_tensor* x, const HcWeights& w, ggml_tensor* norm, const HcOptions& o) {
    const HcMix mix = hc_mix(b, x, w, o);
    return {ops::rms_norm(b, hc_collapse(b, x, mix.pre), norm, o.norm_epsilon), mix};
}

ggml_tensor* generic::hc_expand(const Build& b, ggml_tensor* y, ggml_tensor* x, const HcMix& mix) {
    return ggml_dsv4_hc_post(b.ctx, y, x, mix.post, mix.comb);
}

}  // namespace ds4::ops
