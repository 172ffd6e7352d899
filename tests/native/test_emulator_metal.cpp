// The emulator compiles Metal's kernels and names what is wrong with them.
#define DS4_EMULATED

#include "emulated_kernel.h"
// Words of Metal's are macros from here on.
#include <metal_stdlib>

#include "metal/address_spaces.h"

namespace kernels {
#include "wrong.metal"
}

using test::EmulatedKernel;
using test::says;

namespace {

uint index() { return ds4::emulator::current().thread(); }

std::string fault(void (*thread)(EmulatedKernel&)) {
    EmulatedKernel k;
    try {
        ds4::emulator::run({"kernel", 3, 128, 32, ds4::emulator::kThreadgroupBytes}, k.memory, [&] { thread(k); });
    } catch (const ds4::emulator::Fault& e) {
        return e.what();
    }
    return "no fault";
}

}  // namespace

CASE(the_emulator_runs_metal_kernels) {
    EmulatedKernel k;
    for (size_t i = 0; i < k.in.size(); i++) k.in[i] = static_cast<float>(i % 128);
    k.run(32, [&] {
        kernels::is_right(k.in.data(), k.out.data(), index(), index() % 32, ds4::emulator::current().index());
    });
    CHECK_CLOSE(k.out, (std::vector<float>{8128, 8128, 8128}), 0);
}

CASE(the_emulator_catches_accesses_of_metal_kernels_out_of_bounds) {
    CHECK(says(fault([](EmulatedKernel& k) { kernels::reads_past_the_end(k.in.data(), k.out.data(), index()); }),
               "kernel, block 0, thread 9: reads in[384] (elements of 4 bytes), but there are 384: out of bounds"));
    CHECK(says(fault([](EmulatedKernel&) { kernels::writes_past_the_end_of_shared(index()); }),
               "thread 100: writes tile[100] (elements of 4 bytes), but there are 100: out of bounds"));
    CHECK(says(fault([](EmulatedKernel&) { kernels::takes_too_much_memory(index()); }),
               "32772 bytes of shared memory; a block has 32768"));
}

CASE(the_emulator_catches_reads_of_metal_kernels_of_what_nothing_wrote) {
    CHECK(says(fault([](EmulatedKernel& k) { kernels::reads_what_nothing_wrote(k.out.data(), index()); }),
               "thread 0: reads tile[1] (elements of 4 bytes), which nothing wrote"));
}

CASE(the_emulator_catches_metal_kernels_that_diverge) {
    CHECK(says(fault([](EmulatedKernel&) { kernels::leaves_before_the_barrier(index()); }), "thread 127 has ended"));
    CHECK(says(fault([](EmulatedKernel& k) { kernels::parts_a_simdgroup(k.out.data(), index()); }),
               "thread 1: is at the operation of the wave of wrong.metal:"));
}
