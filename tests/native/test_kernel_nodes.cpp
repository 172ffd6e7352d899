// Nodes that a device's own kernels compute between segments of a graph, with a device that is plain loops.

#include "check.h"
#include "ds4/errors.h"
#include "run_graph.h"
#include "session/segments.h"

using ds4::ops::NoncausalInput;
using test::Graph;

namespace {

constexpr int64_t kSize = 64, kHeads = 3, kRows = 5, kCapacity = 19;

/// Attends by plain loops, and counts what it was asked.
struct PlainLoops : ds4::kernels::Launcher {
    int attended = 0, synchronized = 0;
    bool broken = false;

    static void attend(const ds4::kernels::DraftAttention& w, int64_t row, int64_t head) {
        const int64_t keys = w.ring.rows + w.n, at = (row * w.heads + head) * w.size;
        const auto key = [&](int64_t i, int64_t c) {
            if (i >= w.ring.rows) return w.block[(i - w.ring.rows) * w.size + c];
            return static_cast<const float*>(w.ring.data)[i * w.size + c];
        };
        double sum = std::exp(double(w.sinks[head]));
        std::vector<double> o(w.size);
        for (int64_t i = 0; i < keys; i++) {
            double logit = 0;
            for (int64_t c = 0; c < w.size; c++) logit += double(w.q[at + c]) * key(i, c);
            const double p = std::exp(logit * w.scale + w.mask[row * keys + i]);
            sum += p;
            for (int64_t c = 0; c < w.size; c++) o[c] += p * key(i, c);
        }
        for (int64_t c = 0; c < w.size; c++) w.out[at + c] = static_cast<float>(o[c] / sum);
    }

    void run(const ds4::kernels::DraftAttention& work) override {
        if (broken) throw ds4::BackendError("broken");
        attended++;
        for (int64_t row = 0; row < work.n; row++) {
            for (int64_t head = 0; head < work.heads; head++) attend(work, row, head);
        }
    }
    void run(const ds4::kernels::MarkovHead&) override {}
    void run(const ds4::kernels::DeviceAcceptance&) override {}
    void synchronize() override { synchronized++; }
};

/// Two attentions, the second of which reads the first's output, and what follows them.
struct TwoAttentions {
    Graph g;
    std::vector<ds4::ops::device::Slot> slots;
    ggml_tensor* out;

    explicit TwoAttentions(bool own) {
        if (own) g.b.slots = &slots;
        NoncausalInput in{};
        in.q = g.floats(test::noise(kSize * kHeads * kRows, 60, 2), {kSize, kHeads, kRows});
        in.ring = g.floats(test::noise(kSize * kCapacity, 61), {kSize, kCapacity});
        in.block = g.floats(test::noise(kSize * kRows, 62), {kSize, kRows});
        in.mask = g.floats(mask(), {kCapacity + kRows, kRows});
        in.sinks = g.floats(test::noise(kHeads, 63, 2), {kHeads});
        ggml_tensor* first = ds4::ops::noncausal_attention(g.b, in);
        in.q = ggml_scale(g.b.ctx, first, 3);
        out = ggml_scale(g.b.ctx, ds4::ops::noncausal_attention(g.b, in), 0.5f);
    }

    static std::vector<float> mask() {
        std::vector<float> m((kCapacity + kRows) * kRows);
        for (int64_t i = 0; i < std::ssize(m); i++) m[i] = i % (kCapacity + kRows) < 4 ? -INFINITY : 0.0f;
        return m;
    }

    std::vector<float> run(ds4::session::Segments& between) {
        g.compute_between({out}, ds4::session::Segments::observe, &between);
        return g.read(out);
    }
};

}  // namespace

CASE(slots_give_what_the_composition_gives) {
    TwoAttentions plain(false), own(true);
    PlainLoops device;
    ds4::session::Segments between({&own.slots, &device}, nullptr);
    CHECK_CLOSE(own.run(between), plain.g.run(plain.out), 5e-6);
    CHECK(plain.slots.empty() && own.slots.size() == 2);
    CHECK(device.attended == 2 && device.synchronized == 2);
}

CASE(slots_and_watched_nodes_go_together) {
    TwoAttentions plain(false), own(true);
    PlainLoops device;
    ds4::session::NodeWatch watch;
    ds4::session::Segments between({&own.slots, &device}, &watch);
    CHECK_CLOSE(own.run(between), plain.g.run(plain.out), 5e-6);
    CHECK(watch.found().size() == 4 && device.attended == 2);  // two copies and two that scale
}

CASE(a_kernel_that_fails_ends_the_run) {
    TwoAttentions own(true);
    PlainLoops device;
    device.broken = true;
    ds4::session::Segments between({&own.slots, &device}, nullptr);
    own.run(between);
    REQUIRE_THROWS(ds4::BackendError, between.rethrow());
    CHECK(device.synchronized == 0);
}

CASE(a_graph_without_slots_runs_as_a_whole) {
    const std::vector<ds4::ops::device::Slot> none;
    PlainLoops device;
    ds4::session::NodeWatch watch;
    CHECK(ds4::session::Segments({&none, &device}, nullptr).none());
    CHECK(!ds4::session::Segments({&none, &device}, &watch).none());
}
