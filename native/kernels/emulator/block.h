#pragma once
// Runs a kernel's grid on the calling thread: block after block, the threads of a block by turns, each until it ends or
// waits for others. The order is the same every time. Races are looked for by who touched an element since the last
// barrier; one that depends on where a thread goes may be missed.

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

/// Widest wave, and the shared memory that a block gets on every device: CUDA's static limit, and Metal's.
constexpr int kWidestWave = 64;
constexpr size_t kSharedBytes = 48 * 1024, kThreadgroupBytes = 32 * 1024;

struct Launch {
    const char* kernel;
    int blocks, threads, wave;
    size_t shared_bytes = kSharedBytes;
};

/// Runs `thread` for every thread of the grid. Throws Fault.
void run(const Launch& launch, Memory& memory, const std::function<void()>& thread);

/// The block that is running, for the words of simt.h and of Metal.
class Block {
   public:
    /// `number`: of the launch.
    Block(const Launch& launch, Memory& memory, int index, uint32_t number);

    /// Runs all threads to their ends.
    void run(std::vector<std::unique_ptr<Fiber>>& fibers, const std::function<void()>& thread);

    const Launch& launch() const { return launch_; }
    Memory& memory() const { return memory_; }
    int index() const { return index_; }
    int thread() const { return thread_; }
    /// The access of the running thread.
    Touch touch() const { return {number_, static_cast<uint32_t>(all_.held), index_, thread_}; }

    /// Waits for all threads of the block at the same place.
    void barrier(const Place& place);
    /// Waits for all lanes of the wave at the same place; returns what each lane brought.
    const uint64_t* exchange(uint64_t value, const Place& place);
    /// The block's array that is declared at this place.
    Region& shared(const char* name, size_t bytes, const Place& place);
    std::string where() const;

   private:
    enum class State : uint8_t { ready, waits, done };

    /// Threads that wait for each other: those of the block, or of a wave.
    struct Meeting {
        const char* what;
        int first, size;
        int arrived = 0;
        uint64_t held = 0;  // how many times all had arrived
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
    std::vector<uint64_t> values_;  // what each lane brought, of the last two meetings of its wave
    std::vector<std::unique_ptr<Array>> arrays_;
    size_t shared_bytes_ = 0;
};

/// The running block. Throws std::logic_error outside of a kernel.
Block& current();

/// Throws Fault with the running kernel, block and thread before the text.
[[noreturn]] void fault(const std::string& what);

}  // namespace ds4::emulator
