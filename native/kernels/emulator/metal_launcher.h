#pragma once

#include <memory>

#include "launcher.h"

namespace ds4::emulator {

/// Runs the kernels of kernels/metal.
std::unique_ptr<kernels::Launcher> metal_launcher();

}  // namespace ds4::emulator
