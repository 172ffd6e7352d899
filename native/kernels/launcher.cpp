#include "launcher.h"

#if defined(DS4_EMULATOR)
#include <cstdlib>

#include "emulator/open.h"
#endif

namespace ds4::kernels {

std::unique_ptr<Launcher> open_launcher([[maybe_unused]] ggml_backend_dev_t device) {
#if defined(DS4_EMULATOR)
    if (ggml_backend_dev_type(device) == GGML_BACKEND_DEVICE_TYPE_CPU) {
        const char* ops = std::getenv("DS4_OPS");
        return ops ? emulator::open_launcher(ops) : nullptr;
    }
#endif
    return nullptr;
}

}  // namespace ds4::kernels
