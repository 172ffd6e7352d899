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

}  // namespace ds4::emulator
