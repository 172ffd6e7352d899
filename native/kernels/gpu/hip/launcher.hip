#include "gpu/hip/runtime.h"

#include "gpu/gpu_launcher.h"
#include "gpu/open_launcher.h"

namespace ds4::kernels {

std::unique_ptr<Launcher> open_hip_launcher(int device) {
    int wave = 0;
    hip::check(hipDeviceGetAttribute(&wave, hipDeviceAttributeWarpSize, device), "asking for the width of waves");
    if (wave == 64) return std::make_unique<hip::GpuLauncher<64>>(device);
    return std::make_unique<hip::GpuLauncher<32>>(device);
}

}  // namespace ds4::kernels
