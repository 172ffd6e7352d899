#define DS4_EMULATED
#include "emulator/metal_launcher.h"

#include "emulator/device.h"
#include "gpu/limits.h"
// Words of Metal's are macros from here on.
#include <metal_stdlib>

#include "metal/address_spaces.h"
#include "metal/arguments.h"
#include "metal/make_arguments.h"

// Each file is a library of its own on the device, so names may be the same in two.
namespace attention {
#include "metal/draft_attention.metal"
}
namespace markov {
#include "metal/markov.metal"
}
namespace acceptance {
#include "metal/acceptance.metal"
}

static_assert(sizeof(markov::Candidate) == ds4::kernels::metal_arguments::kCandidateBytes);
static_assert(sizeof(acceptance::Pick) == ds4::kernels::metal_arguments::kPickBytes);

namespace ds4::emulator {
namespace {

constexpr int kSimdgroup = 32;

uint thread_index() { return current().thread(); }
uint group_index() { return current().index(); }

class MetalLauncher final : public kernels::Launcher {
   public:
    void run(const kernels::DraftAttention& w) override {
        kernels::require_draft_attention(w);
        Memory memory;
        describe(memory, w);
        const DraftAttentionArguments a{w.size, w.heads, w.n, w.ring.rows, w.scale};
        const int groups = (w.heads * w.n + attention::kRows - 1) / attention::kRows;
        launch(memory, "draft_attention", groups, attention::kRows * kSimdgroup, [&] {
            if (w.ring.type == kernels::Element::f16) {
                attention::draft_attention_f16(w.q, static_cast<const metal::half*>(w.ring.data), w.block, w.mask,
                                               w.sinks, w.out, a, thread_index(), group_index());
            } else {
                attention::draft_attention_f32(w.q, static_cast<const float*>(w.ring.data), w.block, w.mask, w.sinks,
                                               w.out, a, thread_index(), group_index());
            }
        });
        memory.require_written();
    }
    void run(const kernels::MarkovHead& w) override {
        kernels::require_markov_head(w);
        Memory memory;
        describe(memory, w);
        MarkovArguments a = kernels::metal_arguments::markov_arguments(w);
        std::vector<markov::Candidate> left(static_cast<size_t>(a.pieces) * a.block);
        memory.scratch("left", left.data(), left.size());
        for (; a.position < a.block; a.position++) {
            launch(memory, "markov_position", a.pieces, markov::kThreads, [&] { markov_position(w, left.data(), a); });
        }
        launch(memory, "markov_end", w.confidences ? a.block : 1, markov::kThreads, [&] {
            markov::markov_end(w.anchor, words(w.embedding), w.hidden, words(w.confidence), w.confidence_bias,
                               left.data(), w.tokens, w.log_sum, w.confidences, a, thread_index(), group_index());
        });
        memory.require_written();
    }
    void run(const kernels::DeviceAcceptance& w) override {
        kernels::require_acceptance(w);
        Memory memory;
        describe(memory, w);
        const AcceptanceArguments a = kernels::metal_arguments::acceptance_arguments(w);
        std::vector<acceptance::Candidate> left(static_cast<size_t>(a.rows) * a.pieces);
        std::vector<acceptance::Pick> picks(a.pieces);
        memory.scratch("left", left.data(), left.size());
        memory.scratch("picks", picks.data(), picks.size());
        launch(memory, "acceptance_sums", a.rows * a.pieces, acceptance::kThreads,
               [&] { acceptance::acceptance_sums(w.p, w.q, left.data(), a, thread_index(), group_index()); });
        if (a.draws) {
            launch(memory, "acceptance_draw", a.pieces, acceptance::kThreads, [&] {
                acceptance::acceptance_draw(w.p, w.q, w.proposals, left.data(), picks.data(), a, thread_index(),
                                            group_index());
            });
        }
        launch(memory, "acceptance_result", 1, acceptance::kThreads, [&] {
            acceptance::acceptance_result(w.p, w.q, w.proposals, left.data(), picks.data(), w.result, a,
                                          thread_index());
        });
        memory.require_written();
    }
    void synchronize() override {}

   private:
    static const ushort* words(const kernels::DeviceMatrix& m) { return static_cast<const ushort*>(m.data); }

    /// One thread, by the kernel for W2's type.
    static void markov_position(const kernels::MarkovHead& w, markov::Candidate* left, const MarkovArguments& a) {
        const auto with = [&](const auto* output, auto kernel_of) {
            kernel_of(w.base, w.anchor, words(w.embedding), output, left, w.tokens, w.logits, w.log_sum, a,
                      thread_index(), group_index());
        };
        const void* output = w.output.data;
        const bool fours = kernels::metal_arguments::in_fours(w.output);
        switch (w.output.type) {
            case kernels::Element::f32:
                if (fours) return with(static_cast<const metal::float4*>(output), markov::markov_position_f32x4);
                return with(static_cast<const float*>(output), markov::markov_position_f32);
            case kernels::Element::f16:
                if (fours) return with(static_cast<const metal::ushort4*>(output), markov::markov_position_f16x4);
                return with(static_cast<const ushort*>(output), markov::markov_position_f16);
            case kernels::Element::bf16:
                if (fours) return with(static_cast<const metal::ushort4*>(output), markov::markov_position_bf16x4);
                return with(static_cast<const ushort*>(output), markov::markov_position_bf16);
            case kernels::Element::q8_0:
                return with(static_cast<const ushort*>(output), markov::markov_position_q8_0);
        }
    }

    static void launch(Memory& memory, const char* name, int groups, int threads, const std::function<void()>& body) {
        emulator::run({name, groups, threads, kSimdgroup, kThreadgroupBytes}, memory, body);
    }
};

}  // namespace

std::unique_ptr<kernels::Launcher> metal_launcher() { return std::make_unique<MetalLauncher>(); }

}  // namespace ds4::emulator
