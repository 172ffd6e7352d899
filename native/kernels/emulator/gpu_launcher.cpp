#define DS4_EMULATED
#include "emulator/gpu_launcher.h"

#include "emulator/device.h"
#include "gpu/acceptance.cuh"
#include "gpu/draft_attention.cuh"
#include "gpu/markov.cuh"

namespace ds4::emulator {
namespace {

template <int kWave>
class GpuLauncher final : public kernels::Launcher {
   public:
    void run(const kernels::DraftAttention& work) override { emulate(work); }
    void run(const kernels::MarkovHead& work) override { emulate(work); }
    void run(const kernels::DeviceAcceptance& work) override { emulate(work); }
    void synchronize() override {}

   private:
    template <typename Work>
    void emulate(const Work& work) {
        Memory memory;
        describe(memory, work);
        Device device(memory, kWave);
        kernels::emulated::launch<kWave>(device, work);
        memory.require_written();
    }
};

}  // namespace

std::unique_ptr<kernels::Launcher> gpu_launcher(int wave) {
    if (wave == 32) return std::make_unique<GpuLauncher<32>>();
    return std::make_unique<GpuLauncher<64>>();
}

}  // namespace ds4::emulator
