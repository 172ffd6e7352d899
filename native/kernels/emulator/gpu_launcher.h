#pragma once

#include <memory>

#include "launcher.h"

namespace ds4::emulator {

/// Returns a launcher that emulates the kernels of kernels/gpu with waves of 32 or 64 lanes.
std::unique_ptr<kernels::Launcher> gpu_launcher(int wave);

}  // namespace ds4::emulator
