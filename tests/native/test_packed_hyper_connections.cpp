// Nodes around a sub-layer against ggml's operations, and the bits of their rows.

#include <cstring>

#include "check.h"
#include "packed_weights.h"

using ds4::ops::HcInput;
using test::Graph;
using test::PackedWeights;

namespace {

constexpr int64_t kHidden = 200, kStreams = 4, kMix = 24, kRows = 5, kWidth = kHidden * kStreams;

struct Rig {
    PackedWeights fn;
    std::vector<float> x = test::noise(kWidth * kRows, 2, 3), y = test::noise(kHidden * kRows, 3),
                       norm = test::noise(kHidden, 4), base = test::noise(kMix, 5);

    explicit Rig(ggml_type type) : fn(kWidth, kMix, 1, true, type, 1, 0.1f) {}

    /// h, pre, and the streams after the sub-layer, of rows [first, first + n).
    std::vector<std::vector<float>> run(bool own, int64_t first, int64_t n) const {
        Graph g;
        g.b.choice = ds4::kernels::KernelChoice::of_cpu(own);
        const auto rows = [&](const std::vector<float>& all, int64_t width) {
            return std::vector<float>(all.begin() + first * width, all.begin() + (first + n) * width);
        };
        ggml_tensor* streams = g.floats(rows(x, kWidth), {kHidden, kStreams, n});
        const ds4::ops::HcWeights w{own ? fn.packed : fn.exact, g.floats(base, {kMix}), g.floats({1, .5f, 2}, {3})};
        const HcInput in = ds4::ops::hc_open(g.b, streams, w, g.floats(norm, {kHidden}), {20, 1e-6f, 1e-5f});
        ggml_tensor* pre = ggml_cont(g.b.ctx, in.mix.pre);
        ggml_tensor* out = ds4::ops::hc_expand(g.b, g.floats(rows(y, kHidden), {kHidden, n}), streams, in.mix);
        g.compute({in.h, pre, out});
        return {g.read(in.h), g.read(pre), g.read(out)};
    }
};

void check_nodes(ggml_type type, double tolerance) {
    const Rig rig(type);
    const auto all = rig.run(true, 0, kRows), wanted = rig.run(false, 0, kRows);
    for (size_t k = 0; k < wanted.size(); k++) CHECK_CLOSE(all[k], wanted[k], tolerance);
    for (int64_t n : {1, 3}) {
        for (int64_t first = 0; first + n <= kRows; first++) {
            const auto some = rig.run(true, first, n);
            for (size_t k = 0; k < some.size(); k++) {
                const size_t width = all[k].size() / kRows;
                CHECK(!std::memcmp(some[k].data(), &all[k][first * width], some[k].size() * sizeof(float)));
            }
        }
    }
}

}  // namespace

CASE(packed_hyper_connections_are_ggmls) {
    check_nodes(GGML_TYPE_F32, 2e-5);
    check_nodes(GGML_TYPE_F16, 2e-5);
}

CASE(own_rms_norm_is_ggmls) {
    const std::vector<float> x = test::noise(70 * 3 * 5, 1, 3), weight = test::noise(70, 2);
    for (bool weighted : {false, true}) {
        std::vector<std::vector<float>> found;
        for (bool own : {true, false}) {
            Graph g;
            g.b.choice = ds4::kernels::KernelChoice::of_cpu(own);
            ggml_tensor* w = weighted ? g.floats(weight, {70}) : nullptr;
            found.push_back(g.run(ds4::ops::rms_norm(g.b, g.floats(x, {70, 3, 5}), w, 1e-5f)));
        }
        CHECK_CLOSE(found[0], found[1], 2e-6);
    }
}
