#pragma once
// Runs a kernel's grid on the calling thread, one block after another. The threads of a block take turns; each runs
// until it ends or waits for others. The order is the same in every run. A race is found when two threads touch an
// element between two barriers; a race on a branch that no thread takes in this order is missed.

#include <cstdint>
#include <functional>
#include <memory>
#include <source_location>
#include <string>
#include <vector>

#include "emulator/fiber.h"
#include "emulator/memory.h"

namespace ds4::emulator {

using Place = std::source_location;

/// The widest wave, and the shared memory of a block that every device has: CUDA's static limit, and Metal's limit.
constexpr int kWidestWave = 64;
constexpr size_t kSharedBytes = 48 * 1024, kThreadgroupBytes = 32 * 1024;

struct Launch {
    const char* kernel;
    int blocks, threads, wave;
    size_t shared_bytes = kSharedBytes;
};

/// Calls `thread` once for every thread of the grid. Throws Fault for an error of the kernel.
void run(const Launch& launch, Memory& memory, const std::function<void()>& thread);

/// The block that is running. The functions of simt.h and of Metal use it.
class Block {
   public:
    /// Block `index` of a launch; `number` counts launches.
    Block(const Launch& launch, Memory& memory, int index, uint32_t number);

    /// Runs all threads until they have ended.
    void run(std::vector<std::unique_ptr<Fiber>>& fibers, const std::function<void()>& thread);

    const Launch& launch() const { return launch_; }
    Memory& memory() const { return memory_; }
    int index() const { return index_; }
    int thread() const { return thread_; }
    /// Returns the record of an access by the running thread.
    Touch touch() const { return {number_, static_cast<uint32_t>(all_.held), index_, thread_}; }

    /// Waits until all threads of the block have reached the same place in the source.
    void barrier(const Place& place);
    /// Waits until all lanes of the wave have reached the same place. Returns the value that each lane passed.
    const uint64_t* exchange(uint64_t value, const Place& place);
    /// Returns the block's shared array that is declared at this place; allocates it on the first call.
    Region& shared(const char* name, size_t bytes, const Place& place);
    std::string where() const;

   private:
    enum class State : uint8_t { ready, waits, done };

    /// The state of a barrier: the threads of the block, or of a wave, that wait for each other.
    struct Meeting {
        const char* what;
        int first, size;
        int arrived = 0;
        uint64_t held = 0;  // how many times all threads have met
        Place place{};
    };
    struct Array {
        Place place;
        std::unique_ptr<std::byte[]> data;
        Region region;
    };

    void meet(Meeting& meeting, const Place& place);
    void step(int thread);
    void stuck();

    const Launch& launch_;
    Memory& memory_;
    int index_, thread_ = 0;
    uint32_t number_;
    std::vector<State> states_;
    std::vector<Fiber*> fibers_;
    Meeting all_;
    std::vector<Meeting> waves_;
    std::vector<const Meeting*> waits_for_;
    std::vector<uint64_t> values_;  // the value of each lane in the last two meetings of its wave
    std::vector<std::unique_ptr<Array>> arrays_;
    size_t shared_bytes_ = 0;
};

/// Returns the running block. Throws std::logic_error outside of a kernel.
Block& current();

/// Throws a Fault whose text is the running kernel, block and thread, then `what`.
[[noreturn]] void fault(const std::string& what);

}  // namespace ds4::emulator
