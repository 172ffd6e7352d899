#pragma once
// The emulated device that the launch functions of the gpu kernels receive in place of a stream.

#include <cstddef>
#include <deque>
#include <vector>

#include "emulator/block.h"
#include "launcher.h"

namespace ds4::emulator {

/// Returns the bytes of a matrix.
size_t bytes(const kernels::DeviceMatrix& matrix);

/// Add the arrays that one piece of work may access to `memory`, with sizes from its shapes.
void describe(Memory& memory, const kernels::DraftAttention& work);
void describe(Memory& memory, const kernels::MarkovHead& work);
void describe(Memory& memory, const kernels::DeviceAcceptance& work);

/// Runs the kernels of one piece of work.
class Device {
   public:
    Device(Memory& memory, int wave) : memory_(memory), wave_(wave) {}

    template <typename Arguments>
    void launch(const char* name, void (*kernel)(Arguments), int blocks, int threads, const Arguments& arguments) {
        run({name, blocks, threads, wave_}, memory_, [&] { kernel(arguments); });
    }

    template <typename T>
    T* scratch(const char* name, size_t count) {
        std::vector<std::byte>& bytes = scratch_.emplace_back(count * sizeof(T));
        T* data = reinterpret_cast<T*>(bytes.data());
        memory_.scratch(name, data, count);
        return data;
    }

   private:
    Memory& memory_;
    int wave_;
    std::deque<std::vector<std::byte>> scratch_;
};

}  // namespace ds4::emulator
