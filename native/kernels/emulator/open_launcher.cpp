#include "emulator/open_launcher.h"

#include "emulator/gpu_launcher.h"
#include "emulator/metal_launcher.h"

namespace ds4::emulator {

std::unique_ptr<kernels::Launcher> open_launcher(Dialect dialect) {
    switch (dialect) {
        case Dialect::wave32:
            return gpu_launcher(32);
        case Dialect::wave64:
            return gpu_launcher(64);
        default:
            return metal_launcher();
    }
}

std::unique_ptr<kernels::Launcher> open_launcher(kernels::RequestedKernels requested) {
    switch (requested) {
        case kernels::RequestedKernels::emulated:
            return open_launcher(Dialect::wave32);
        case kernels::RequestedKernels::emulated64:
            return open_launcher(Dialect::wave64);
        case kernels::RequestedKernels::emulated_metal:
            return open_launcher(Dialect::metal);
        default:
            return nullptr;
    }
}

}  // namespace ds4::emulator
