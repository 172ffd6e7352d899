#pragma once
// Opens launchers that run device kernels in the emulator, on host memory.

#include <memory>

#include "launcher.h"

namespace ds4::emulator {

/// The kernels to emulate: those of kernels/gpu with waves of 32 or 64 lanes, or those of kernels/metal.
enum class Dialect { wave32, wave64, metal };

std::unique_ptr<kernels::Launcher> open_launcher(Dialect dialect);

/// Returns the launcher of the requested dialect, or null if DS4_OPS does not request the emulator.
std::unique_ptr<kernels::Launcher> open_launcher(kernels::RequestedKernels requested);

}  // namespace ds4::emulator
