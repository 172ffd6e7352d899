#define DS4_EMULATED
#include "emulator/metal_launcher.h"

#include "emulator/device.h"
#include "gpu/work.h"
// Words of Metal's are macros from here on.
#include <metal_stdlib>

#include "metal/arguments.h"
#include "metal/words.h"

// Each file is a library of its own on the device, so names may be the same in two.
namespace attention {
#include "metal/draft_attention.metal"
}

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
    void run(const kernels::MarkovHead&) override { throw BackendError("no kernel for the Markov head"); }
    void run(const kernels::DeviceAcceptance&) override { throw BackendError("no kernel for the acceptance"); }
    void synchronize() override {}

   private:
    static void launch(Memory& memory, const char* name, int groups, int threads, const std::function<void()>& body) {
        emulator::run({name, groups, threads, kSimdgroup, kThreadgroupBytes}, memory, body);
    }
};

}  // namespace

std::unique_ptr<kernels::Launcher> metal_launcher() { return std::make_unique<MetalLauncher>(); }

}  // namespace ds4::emulator
