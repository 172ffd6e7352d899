#pragma once

#include <memory>

#include "launcher.h"

namespace ds4::kernels {

/// Launchers on the device of this number, in builds that have them. Throw BackendError.
std::unique_ptr<Launcher> open_cuda_launcher(int device);
std::unique_ptr<Launcher> open_hip_launcher(int device);

}  // namespace ds4::kernels
