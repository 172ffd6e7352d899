// Which implementation computes each op (kernel_choice.h).

#include <cstdlib>

#include "check.h"
#include "cpu/kernels.h"
#include "ds4/errors.h"
#include "kernel_choice.h"

namespace {

using ds4::kernels::Implementation;
using ds4::kernels::KernelChoice;
using ds4::kernels::Op;
using ds4::kernels::RequestedKernels;

RequestedKernels requested(const char* value) {
    const char* before = std::getenv("DS4_OPS");
    const std::string kept = before ? before : "";
    setenv("DS4_OPS", value, 1);
    std::exception_ptr error;
    RequestedKernels found{};
    try {
        found = ds4::kernels::requested_kernels();
    } catch (...) {
        error = std::current_exception();
    }
    if (before)
        setenv("DS4_OPS", kept.c_str(), 1);
    else
        unsetenv("DS4_OPS");
    if (error) std::rethrow_exception(error);
    return found;
}

}  // namespace

CASE(requested_kernels_are_the_values_of_ds4_ops) {
    CHECK(requested("") == RequestedKernels::automatic);
    CHECK(requested("generic") == RequestedKernels::generic);
    CHECK(requested("emulated") == RequestedKernels::emulated);
    CHECK(requested("emulated64") == RequestedKernels::emulated64);
    CHECK(requested("emulated-metal") == RequestedKernels::emulated_metal);
    std::string message;
    try {
        requested("cuda");
    } catch (const ds4::RequestError& error) {
        message = error.what();
    }
    CHECK(message.find("DS4_OPS is 'cuda', wanted generic, emulated") == 0);
}

CASE(a_kernel_choice_without_own_kernels_is_ggmls) {
    const std::string text = KernelChoice::of_cpu(false).describe();
    CHECK(text.find("own") == std::string::npos && text.find("attention: ggml\n") != std::string::npos);
    CHECK(text.find("acceptance: host\n") != std::string::npos);
}

CASE(a_kernel_choice_of_the_cpu_names_its_variant) {
    const std::string variant = ds4::kernels::available().front()->name;
    KernelChoice choice = KernelChoice::of_cpu(true);
    CHECK(choice.describe(Op::attention) == "own (" + variant + ")");
    CHECK(choice[Op::acceptance] == Implementation::generic);
    choice.use_device(Op::acceptance, "CUDA");
    CHECK(choice.describe(Op::acceptance) == "own (CUDA)" && choice.cpu(Op::markov_head));
}
