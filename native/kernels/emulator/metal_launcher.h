#pragma once

#include <memory>

#include "launcher.h"

namespace ds4::emulator {

/// Returns a launcher that emulates the kernels of kernels/metal.
std::unique_ptr<kernels::Launcher> metal_launcher();

}  // namespace ds4::emulator
