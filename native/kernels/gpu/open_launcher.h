#pragma once

#include <memory>

#include "launcher.h"

namespace ds4::kernels {

/// Open a launcher on the device with this number. Only builds with CUDA or HIP have them. Throw BackendError.
std::unique_ptr<Launcher> open_cuda_launcher(int device);
std::unique_ptr<Launcher> open_hip_launcher(int device);

}  // namespace ds4::kernels
