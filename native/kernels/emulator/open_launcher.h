#pragma once
// A launcher that runs kernels on host memory, in the emulator.

#include <memory>
#include <string_view>

#include "launcher.h"

namespace ds4::emulator {

/// Whose kernels: the gpu ones with waves of 32 or 64 lanes, or Metal's.
enum class Dialect { wave32, wave64, metal };

std::unique_ptr<kernels::Launcher> open_launcher(Dialect dialect);

/// By the value of DS4_OPS: emulated, emulated64, emulated-metal. Null for any other.
std::unique_ptr<kernels::Launcher> open_launcher(std::string_view ops);

}  // namespace ds4::emulator
