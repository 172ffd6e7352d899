#pragma once
// An emulated thread: a function with its own stack, which can pause and continue later.

#include <cstddef>
#include <exception>
#include <functional>
#include <memory>

namespace ds4::emulator {

/// A coroutine that runs on the thread that resumes it.
class Fiber {
   public:
    Fiber();
    ~Fiber();
    Fiber(const Fiber&) = delete;
    Fiber& operator=(const Fiber&) = delete;

    /// Sets the function that the next resume() begins. A paused function is dropped without unwinding its stack.
    void start(const std::function<void()>* body);
    /// Continues the body until it pauses or ends. Rethrows its exception.
    void resume();
    /// Returns to the caller of resume(). Called by the body.
    void pause();
    bool done() const { return done_; }

    /// The first function on the fiber's stack. Only the assembler code calls it.
    static void enter(Fiber* self);

   private:
    static constexpr size_t kStack = 128 * 1024;

    std::unique_ptr<std::byte[]> stack_;
    const std::function<void()>* body_ = nullptr;
    std::exception_ptr failure_;
    void* inside_ = nullptr;   // the body's stack pointer while it is paused
    void* outside_ = nullptr;  // the stack pointer of the thread that resumed it
    bool done_ = true;
};

}  // namespace ds4::emulator
