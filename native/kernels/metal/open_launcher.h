#pragma once

#include <memory>

#include "launcher.h"

namespace ds4::kernels {

/// The launcher of the system's Metal device, in builds that have it. Throws BackendError.
std::unique_ptr<Launcher> open_metal_launcher();

}  // namespace ds4::kernels
