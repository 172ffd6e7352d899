#pragma once
// A launcher that runs kernels on host memory, in the emulator.

#include <memory>

#include "launcher.h"

namespace ds4::emulator {

/// The kernels that are emulated: those of kernels/gpu with waves of 32 or 64 lanes, or Metal's.
enum class Dialect { wave32, wave64, metal };

std::unique_ptr<kernels::Launcher> open_launcher(Dialect dialect);

/// The launcher of the requested dialect, or null where DS4_OPS requests no emulator.
std::unique_ptr<kernels::Launcher> open_launcher(kernels::RequestedKernels requested);

}  // namespace ds4::emulator
