// The emulator runs correct kernels and names what is wrong with others.
#define DS4_EMULATED

#include "check.h"
#include "gpu/simt.h"

namespace simt = ds4::kernels::simt;
using ds4::emulator::Fault;
using ds4::emulator::Memory;
using simt::Global;

namespace {

constexpr int kThreads = 128;

/// Sums of rows of kThreads numbers, one block a row.
struct SumArguments {
    Global<const float> x;
    Global<float> sums;
};

template <int kWave>
DS4_KERNEL(kThreads)
void row_sums(SumArguments a) {
    DS4_SHARED(float, parts, kThreads / kWave);
    const float sum = simt::wave_sum<kWave>(a.x[simt::block() * kThreads + simt::thread()]);
    if (simt::lane<kWave>() == 0) parts[simt::wave<kWave>()] = sum;
    simt::barrier();
    if (simt::thread() > 0) return;
    float total = 0;
    for (int i = 0; i < kThreads / kWave; i++) total += parts[i];
    a.sums[simt::block()] = total;
}

struct Numbers {
    std::vector<float> in = std::vector<float>(3 * kThreads, 0.5f), out = std::vector<float>(3);
    Memory memory;

    Numbers() {
        memory.input("in", in.data(), in.size());
        memory.output("out", out.data(), out.size());
    }

    /// Runs `thread` as a kernel on 3 blocks.
    template <typename F>
    void run(int wave, F thread) {
        ds4::emulator::run({"kernel", 3, kThreads, wave}, memory, thread);
    }

    /// The text of the fault that the kernel ends with.
    template <typename F>
    std::string fault(F thread) {
        try {
            run(32, thread);
        } catch (const Fault& e) {
            return e.what();
        }
        return "no fault";
    }
};

bool has(const std::string& text, const std::string& part) {
    if (text.find(part) != std::string::npos) return true;
    std::printf("  '%s' does not say '%s'\n", text.c_str(), part.c_str());
    return false;
}

}  // namespace

CASE(the_emulator_runs_blocks_waves_and_barriers) {
    for (int wave : {32, 64}) {
        Numbers n;
        for (size_t i = 0; i < n.in.size(); i++) n.in[i] = static_cast<float>(i);
        const SumArguments a{n.in.data(), n.out.data()};
        n.run(wave, [&] { wave == 32 ? row_sums<32>(a) : row_sums<64>(a); });
        n.memory.require_written();
        CHECK_CLOSE(n.out, (std::vector<float>{8128, 8128 + 128 * 128, 8128 + 2 * 128 * 128}), 0);
    }
}

CASE(the_emulator_catches_barriers_that_not_all_reach) {
    Numbers n;
    const std::string ended = n.fault([] {
        if (simt::thread() != 7) simt::barrier();
    });
    CHECK(has(ended, "kernel, block 0, thread 0: waits at test_emulator.cpp"));
    CHECK(has(ended, "thread 7 has ended"));
}
