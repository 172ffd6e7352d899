#include "ds4/errors.h"
#include "gpu/work.h"
#include "metal/arguments.h"
#include "metal/open.h"
#include "metal/queue.h"

namespace ds4::kernels {
namespace {

/// The texts of the .metal files.
const std::vector<std::string> kSources = {
#include "metal/sources.inc"
};

class MetalLauncher final : public Launcher {
   public:
    MetalLauncher() : queue_(kSources) {}

    void run(const DraftAttention& w) override {
        require_draft_attention(w);
        constexpr int kRows = 8, kThreads = 32 * kRows;  // as in draft_attention.metal
        const size_t size = w.size, heads = w.heads, n = w.n, keys = w.ring.rows + n;
        const char* kernel = w.ring.type == Element::f16 ? "draft_attention_f16" : "draft_attention_f32";
        queue_.launch(kernel, (w.heads * w.n + kRows - 1) / kRows, kThreads,
                      {memory(w.q, size * heads * n), memory(w.ring), memory(w.block, size * n),
                       memory(w.mask, keys * n), memory(w.sinks, heads), memory(w.out, size * heads * n)},
                      DraftAttentionArguments{w.size, w.heads, w.n, w.ring.rows, w.scale});
        queue_.commit();
    }
    void run(const MarkovHead&) override { throw BackendError("no kernel for the Markov head"); }
    void run(const DeviceAcceptance&) override { throw BackendError("no kernel for the acceptance"); }
    void synchronize() override { queue_.synchronize(); }

   private:
    MetalQueue queue_;
};

}  // namespace

std::unique_ptr<Launcher> open_metal_launcher() { return std::make_unique<MetalLauncher>(); }

}  // namespace ds4::kernels
