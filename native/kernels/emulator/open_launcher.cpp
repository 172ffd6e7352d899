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

std::unique_ptr<kernels::Launcher> open_launcher(std::string_view ops) {
    if (ops == "emulated") return open_launcher(Dialect::wave32);
    if (ops == "emulated64") return open_launcher(Dialect::wave64);
    if (ops == "emulated-metal") return open_launcher(Dialect::metal);
    return nullptr;
}

}  // namespace ds4::emulator
