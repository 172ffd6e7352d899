// The draft attention of the device kernels, emulated, against ggml's operations.

#include <random>

#include "check.h"
#include "emulator/open_launcher.h"
#include "run_graph.h"

using ds4::emulator::Dialect;
using test::Graph;

namespace {

constexpr double kTolerance = 1e-4;  // relative to the largest component of a head's output

/// Sizes of a block's attention, and which slots of the ring are seen: `visible` from `start` on, round its end.
struct Shape {
    int size, heads, n, capacity, start, visible;
    ggml_type type;

    bool shows(int slot) const { return (slot - start + capacity) % capacity < visible; }
};

struct Problem {
    Shape s;
    std::vector<float> q, ring, block, mask, sinks;

    Problem(const Shape& s, uint32_t seed)
        : s(s),
          q(test::noise(s.size * s.heads * s.n, seed, 2)),
          ring(test::noise(s.size * s.capacity, seed + 1)),
          block(test::noise(s.size * s.n, seed + 2)),
          mask((s.capacity + s.n) * s.n),
          sinks(test::noise(s.heads, seed + 3, 2)) {
        for (size_t i = 0; i < mask.size(); i++) {
            const int key = static_cast<int>(i % (s.capacity + s.n));
            if (key < s.capacity && !s.shows(key)) mask[i] = -INFINITY;
        }
    }

    std::vector<float> wanted() const {
        Graph g;
        ds4::ops::NoncausalInput in{};
        in.q = g.floats(q, {s.size, s.heads, s.n});
        in.ring = g.floats(ring, {s.size, s.capacity}, s.type);
        in.block = g.floats(block, {s.size, s.n});
        in.mask = g.floats(mask, {s.capacity + s.n, s.n});
        in.sinks = g.floats(sinks, {s.heads});
        return g.run(ds4::ops::noncausal_attention(g.b, in));
    }

    std::vector<float> found(Dialect dialect) const {
        std::vector<ggml_fp16_t> half(ring.size());
        ggml_fp32_to_fp16_row(ring.data(), half.data(), static_cast<int64_t>(half.size()));
        std::vector<float> out(q.size());
        ds4::kernels::DraftAttention work{};
        work.q = q.data();
        work.ring = {half.data(), ds4::kernels::Element::f16, s.size, s.capacity};
        if (s.type == GGML_TYPE_F32) work.ring = {ring.data(), ds4::kernels::Element::f32, s.size, s.capacity};
        work.block = block.data();
        work.mask = mask.data();
        work.sinks = sinks.data();
        work.out = out.data();
        work.size = s.size;
        work.heads = s.heads;
        work.n = s.n;
        work.scale = 1 / std::sqrt(static_cast<float>(s.size));
        ds4::emulator::open_launcher(dialect)->run(work);
        return out;
    }

    /// Compares every head of every query.
    void check(Dialect dialect) const {
        const std::vector<float> w = wanted(), f = found(dialect);
        for (size_t first = 0; first < w.size(); first += s.size) {
            double largest = 0, off = 0;
            for (int i = 0; i < s.size; i++) {
                largest = std::fmax(largest, std::fabs(w[first + i]));
                off = std::fmax(off, std::fabs(double(w[first + i]) - f[first + i]));
            }
            CHECK_CLOSE(off / largest, 0.0, kTolerance);
        }
    }
};

/// Any shape that a drafter may have: heads 1 to 64 of 64 to 512, 1 to 8 queries, rings of 1 to 133.
Shape random_shape(std::mt19937& bits) {
    const auto between = [&](int low, int high) { return low + static_cast<int>(bits() % (high - low + 1)); };
    Shape s{};
    s.size = between(64, 512);
    s.heads = between(1, 64);
    s.n = between(1, 8);
    s.capacity = between(1, 133);
    s.start = between(0, s.capacity - 1);
    s.visible = between(0, s.capacity);
    s.type = bits() % 2 ? GGML_TYPE_F16 : GGML_TYPE_F32;
    return s;
}

void check_random_shapes(Dialect dialect) {
    std::mt19937 bits(2026);
    for (uint32_t i = 0; i < 10; i++) Problem(random_shape(bits), 100 * i).check(dialect);
}

/// The largest there is: DeepSeek-V4-Flash's with every slot of a wrapped ring but the slack's.
void check_flash(Dialect dialect) { Problem({512, 64, 6, 144, 77, 128, GGML_TYPE_F16}, 7).check(dialect); }

}  // namespace

CASE(emulated_draft_attention_of_waves_of_32) {
    check_flash(Dialect::wave32);
    check_random_shapes(Dialect::wave32);
}

CASE(emulated_draft_attention_of_waves_of_64) {
    check_flash(Dialect::wave64);
    check_random_shapes(Dialect::wave64);
}

CASE(emulated_draft_attention_of_metal) {
    check_flash(Dialect::metal);
    check_random_shapes(Dialect::metal);
}
