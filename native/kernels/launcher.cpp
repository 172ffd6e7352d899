#include "launcher.h"

#include <cstdlib>
#include <string>
#include <string_view>

#if defined(DS4_EMULATOR)
#include "emulator/open_launcher.h"
#endif
#if defined(DS4_CUDA) || defined(DS4_HIP)
#include "gpu/open_launcher.h"
#endif
#if defined(DS4_METAL)
#include "metal/open_launcher.h"
#endif

namespace ds4::kernels {
namespace {

/// The number at the end of a device's name, as in CUDA1; 0 without one.
[[maybe_unused]] int number(std::string_view name) {
    const size_t digits = name.find_first_of("0123456789");
    return digits == std::string_view::npos ? 0 : std::atoi(std::string(name.substr(digits)).c_str());
}

}  // namespace

std::unique_ptr<Launcher> open_launcher(ggml_backend_dev_t device, RequestedKernels requested) {
    if (requested == RequestedKernels::generic) return nullptr;
    [[maybe_unused]] const std::string_view name = ggml_backend_dev_name(device);
#if defined(DS4_CUDA)
    if (name.starts_with("CUDA")) return open_cuda_launcher(number(name));
#endif
#if defined(DS4_HIP)
    if (name.starts_with("ROCm")) return open_hip_launcher(number(name));
#endif
#if defined(DS4_METAL)
    if (name.starts_with("MTL") || name.starts_with("Metal")) return open_metal_launcher();
#endif
#if defined(DS4_EMULATOR)
    if (ggml_backend_dev_type(device) == GGML_BACKEND_DEVICE_TYPE_CPU) return emulator::open_launcher(requested);
#endif
    return nullptr;
}

}  // namespace ds4::kernels
