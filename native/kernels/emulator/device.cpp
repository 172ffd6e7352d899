#include "emulator/device.h"

namespace ds4::emulator {

size_t bytes(const kernels::DeviceMatrix& m) {
    const size_t count = static_cast<size_t>(m.columns) * m.rows;
    switch (m.type) {
        case kernels::Element::f32:
            return count * 4;
        case kernels::Element::q8_0:
            return count / 32 * 34;
        default:
            return count * 2;
    }
}

void describe(Memory& memory, const kernels::DraftAttention& w) {
    const size_t size = w.size, heads = w.heads, n = w.n, keys = w.ring.rows + n;
    memory.input("q", w.q, size * heads * n);
    memory.input_bytes("ring", w.ring.data, bytes(w.ring));
    memory.input("block", w.block, size * n);
    memory.input("mask", w.mask, keys * n);
    memory.input("sinks", w.sinks, heads);
    memory.output("out", w.out, size * heads * n);
}

void describe(Memory& memory, const kernels::MarkovHead& w) {
    const size_t vocab = w.vocab, block = w.block;
    memory.input("base", w.base, vocab * block);
    memory.input("anchor", w.anchor, 1);
    memory.input_bytes("W1", w.embedding.data, bytes(w.embedding));
    memory.input_bytes("W2", w.output.data, bytes(w.output));
    memory.input("hidden", w.hidden, w.hidden_size * block);
    memory.input_bytes("confidence", w.confidence.data, bytes(w.confidence));
    memory.input("confidence_bias", w.confidence_bias, 1);
    memory.output("tokens", w.tokens, block);
    memory.output("logits", w.logits, vocab * block);
    memory.output("log_sum", w.log_sum, block);
    memory.output("confidences", w.confidences, block);
}

void describe(Memory& memory, const kernels::DeviceAcceptance& w) {
    const size_t vocab = w.vocab, k = w.k;
    memory.input("p", w.p, vocab * (k + 1));
    memory.input("q", w.q, vocab * k);
    memory.input("proposals", w.proposals, k);
    memory.output("result", w.result, 2);
}

}  // namespace ds4::emulator
