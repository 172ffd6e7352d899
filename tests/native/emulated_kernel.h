#pragma once
// Tiny kernels in the emulator.

#include <functional>
#include <string>
#include <vector>

#include "check.h"
#include "emulator/block.h"

namespace test {

/// Three blocks of 128 threads, an input `in` of a number for each thread, and an output `out` of one for each block.
struct EmulatedKernel {
    static constexpr int kBlocks = 3, kThreads = 128;

    std::vector<float> in = std::vector<float>(kBlocks * kThreads, 0.5f), out = std::vector<float>(kBlocks);
    ds4::emulator::Memory memory;

    EmulatedKernel() {
        memory.input("in", in.data(), in.size());
        memory.output("out", out.data(), out.size());
    }

    void run(int wave, const std::function<void()>& thread) {
        ds4::emulator::run({"kernel", kBlocks, kThreads, wave, ds4::emulator::kSharedBytes}, memory, thread);
    }

    /// The emulator's report on a kernel of waves of 32.
    std::string fault(const std::function<void()>& thread) {
        try {
            run(32, thread);
        } catch (const ds4::emulator::Fault& e) {
            return e.what();
        }
        return "no fault";
    }
};

inline bool says(const std::string& text, const std::string& part) {
    if (text.find(part) != std::string::npos) return true;
    std::printf("  '%s' does not say '%s'\n", text.c_str(), part.c_str());
    return false;
}

}  // namespace test
