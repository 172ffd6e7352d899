#include "gpu/cuda/runtime.h"
#include "gpu/gpu_launcher.h"
#include "gpu/open_launcher.h"

namespace ds4::kernels {

std::unique_ptr<Launcher> open_cuda_launcher(int device) { return std::make_unique<cuda::GpuLauncher<32>>(device); }

}  // namespace ds4::kernels
