#pragma once
// A function with a stack of its own that can pause in the middle: one emulated thread.

#include <cstddef>
#include <exception>
#include <functional>
#include <memory>

namespace ds4::emulator {

/// Runs on the thread that resumes it, by turns with that thread.
class Fiber {
   public:
    Fiber();
    ~Fiber();
    Fiber(const Fiber&) = delete;
    Fiber& operator=(const Fiber&) = delete;

    /// Makes `body` what the next resume() begins. What the fiber was paused in is dropped without unwinding.
    void start(const std::function<void()>* body);
    /// Goes on with the body until it pauses or ends. Rethrows what the body throws.
    void resume();
    /// Called by the body: returns from resume().
    void pause();
    bool done() const { return done_; }

    /// The first function on the stack; for the assembler code alone.
    static void enter(Fiber* self);

   private:
    static constexpr size_t kStack = 128 * 1024;

    std::unique_ptr<std::byte[]> stack_;
    const std::function<void()>* body_ = nullptr;
    std::exception_ptr failure_;
    void* inside_ = nullptr;   // the body's stack pointer while it is paused
    void* outside_ = nullptr;  // the resumer's
    bool done_ = true;
};

}  // namespace ds4::emulator
