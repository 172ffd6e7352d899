#include "kernel_choice.h"

#include <cstdlib>
#include <string_view>

#include "cpu/kernels.h"
#include "ds4/errors.h"

namespace ds4::kernels {
namespace {

constexpr std::array<const char*, kOps> kNames{"matmul",          "rms_norm",    "hyper_connections", "compress",
                                               "index_scores",    "top_rows",    "attention",         "route",
                                               "draft_attention", "markov_head", "acceptance"};

constexpr std::array<std::string_view, 5> kRequests{"", "generic", "emulated", "emulated64", "emulated-metal"};

}  // namespace

RequestedKernels requested_kernels() {
    const char* given = std::getenv("DS4_OPS");
    const std::string_view value = given ? given : "";
    for (size_t i = 0; i < kRequests.size(); i++) {
        if (value == kRequests[i]) return static_cast<RequestedKernels>(i);
    }
    throw RequestError("DS4_OPS is '" + std::string(value) +
                       "', wanted generic, emulated, emulated64 or emulated-metal, or nothing for ds4's own kernels");
}

KernelChoice KernelChoice::of_cpu(bool own) {
    KernelChoice choice;
    if (!own) return choice;
    choice.by_.fill(Implementation::cpu);
    choice.by_[static_cast<size_t>(Op::acceptance)] = Implementation::generic;
    choice.variant_ = available().front()->name;
    return choice;
}

void KernelChoice::use_device(Op op, const char* device) {
    by_[static_cast<size_t>(op)] = Implementation::device;
    device_ = device;
}

std::string KernelChoice::describe(Op op) const {
    switch ((*this)[op]) {
        case Implementation::cpu:
            return std::string("own (") + variant_ + ")";
        case Implementation::device:
            return std::string("own (") + device_ + ")";
        default:
            return op == Op::acceptance ? "host" : "ggml";
    }
}

std::string KernelChoice::describe() const {
    std::string text;
    for (size_t i = 0; i < kOps; i++) text += std::string(kNames[i]) + ": " + describe(static_cast<Op>(i)) + "\n";
    return text;
}

}  // namespace ds4::kernels
