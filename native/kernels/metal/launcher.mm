#include "ds4/errors.h"
#include "gpu/limits.h"
#include "metal/make_arguments.h"
#include "metal/open_launcher.h"
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
    void run(const MarkovHead& w) override {
        require_markov_head(w);
        MarkovArguments a = metal_arguments::markov_arguments(w);
        const size_t vocab = w.vocab, block = w.block;
        const Bytes left = scratch(0, metal_arguments::kCandidateBytes * a.pieces * block);
        const Bytes anchor = memory(w.anchor, 1), tokens = memory(w.tokens, block), sums = memory(w.log_sum, block);
        const std::string kernel = metal_arguments::markov_position_kernel(w.output);
        for (; a.position < a.block; a.position++) {
            queue_.launch(kernel.c_str(), a.pieces, metal_arguments::kThreads,
                          {memory(w.base, vocab * block), anchor, memory(w.embedding), memory(w.output), left, tokens,
                           memory(w.logits, vocab * block), sums},
                          a);
        }
        queue_.launch("markov_end", w.confidences ? a.block : 1, metal_arguments::kThreads,
                      {anchor, memory(w.embedding), memory(w.hidden, w.hidden_size * block), memory(w.confidence),
                       memory(w.confidence_bias, 1), left, tokens, sums, memory(w.confidences, block)},
                      a);
        queue_.commit();
    }
    void run(const DeviceAcceptance& w) override {
        require_acceptance(w);
        const AcceptanceArguments a = metal_arguments::acceptance_arguments(w);
        const size_t vocab = w.vocab, k = w.k;
        const Bytes p = memory(w.p, vocab * (k + 1)), q = memory(w.q, vocab * k), proposals = memory(w.proposals, k);
        const Bytes left = scratch(0, metal_arguments::kCandidateBytes * a.rows * a.pieces);
        const Bytes picks = scratch(1, metal_arguments::kPickBytes * a.pieces);
        constexpr int kThreads = metal_arguments::kThreads;
        queue_.launch("acceptance_sums", a.rows * a.pieces, kThreads, {p, q, left}, a);
        if (a.draws) queue_.launch("acceptance_draw", a.pieces, kThreads, {p, q, proposals, left, picks}, a);
        queue_.launch("acceptance_result", 1, kThreads, {p, q, proposals, left, picks, memory(w.result, 2)}, a);
        queue_.commit();
    }
    void synchronize() override { queue_.synchronize(); }

   private:
    Bytes scratch(size_t number, size_t bytes) { return {queue_.scratch(number, bytes), bytes}; }

    MetalQueue queue_;
};

}  // namespace

std::unique_ptr<Launcher> open_metal_launcher() { return std::make_unique<MetalLauncher>(); }

}  // namespace ds4::kernels
