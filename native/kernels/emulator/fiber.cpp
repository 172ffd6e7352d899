#include "emulator/fiber.h"

#include <cstdint>
#include <utility>

// Saves what a call must keep on the running stack, stores the stack's pointer in *from, and goes on with the stack
// `to`. A new stack begins with a frame of the same layout that returns to the start code, which calls Fiber::enter.
extern "C" void ds4_fiber_switch(void** from, void* to);
extern "C" void ds4_fiber_begin();
extern "C" void ds4_fiber_enter(ds4::emulator::Fiber* self) { ds4::emulator::Fiber::enter(self); }

#if defined(__APPLE__)
#define SYMBOL(name) "_" #name
#else
#define SYMBOL(name) #name
#endif

#if defined(__x86_64__)

namespace {
constexpr size_t kFrame = 7;  // six registers and the address to return to
constexpr size_t kSelf = 0, kReturn = 6;
}  // namespace

asm(".text\n.globl " SYMBOL(ds4_fiber_switch) "\n" SYMBOL(ds4_fiber_switch) ":\n"
    "pushq %rbp\npushq %rbx\npushq %r12\npushq %r13\npushq %r14\npushq %r15\n"
    "movq %rsp, (%rdi)\nmovq %rsi, %rsp\n"
    "popq %r15\npopq %r14\npopq %r13\npopq %r12\npopq %rbx\npopq %rbp\nret\n"
    ".globl " SYMBOL(ds4_fiber_begin) "\n" SYMBOL(ds4_fiber_begin) ":\n"
    "movq %r15, %rdi\ncall " SYMBOL(ds4_fiber_enter) "\nud2\n");

#elif defined(__aarch64__)

namespace {
constexpr size_t kFrame = 20;  // x19 to x30, d8 to d15
constexpr size_t kSelf = 0, kReturn = 11;
}  // namespace

asm(".text\n.globl " SYMBOL(ds4_fiber_switch) "\n.p2align 2\n" SYMBOL(ds4_fiber_switch) ":\n"
    "sub sp, sp, #160\n"
    "stp x19, x20, [sp]\nstp x21, x22, [sp, #16]\nstp x23, x24, [sp, #32]\nstp x25, x26, [sp, #48]\n"
    "stp x27, x28, [sp, #64]\nstp x29, x30, [sp, #80]\n"
    "stp d8, d9, [sp, #96]\nstp d10, d11, [sp, #112]\nstp d12, d13, [sp, #128]\nstp d14, d15, [sp, #144]\n"
    "mov x9, sp\nstr x9, [x0]\nmov sp, x1\n"
    "ldp x19, x20, [sp]\nldp x21, x22, [sp, #16]\nldp x23, x24, [sp, #32]\nldp x25, x26, [sp, #48]\n"
    "ldp x27, x28, [sp, #64]\nldp x29, x30, [sp, #80]\n"
    "ldp d8, d9, [sp, #96]\nldp d10, d11, [sp, #112]\nldp d12, d13, [sp, #128]\nldp d14, d15, [sp, #144]\n"
    "add sp, sp, #160\nret\n"
    ".globl " SYMBOL(ds4_fiber_begin) "\n.p2align 2\n" SYMBOL(ds4_fiber_begin) ":\n"
    "mov x0, x19\nbl " SYMBOL(ds4_fiber_enter) "\nbrk #0\n");

#else
#error "the emulator switches stacks in assembler: add this processor's"
#endif

namespace ds4::emulator {

Fiber::Fiber() : stack_(new std::byte[kStack]) {}
Fiber::~Fiber() = default;

void Fiber::start(const std::function<void()>* body) {
    body_ = body;
    done_ = false;
    const uintptr_t top = reinterpret_cast<uintptr_t>(stack_.get() + kStack) / 16 * 16;
    void** frame = reinterpret_cast<void**>(top) - kFrame;  // both processors want the frame's end 16-aligned
    for (size_t i = 0; i < kFrame; i++) frame[i] = nullptr;
    frame[kSelf] = this;
    frame[kReturn] = reinterpret_cast<void*>(ds4_fiber_begin);
    inside_ = frame;
}

void Fiber::resume() {
    ds4_fiber_switch(&outside_, inside_);
    if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
}

void Fiber::pause() { ds4_fiber_switch(&inside_, outside_); }

void Fiber::enter(Fiber* self) {
    try {
        (*self->body_)();
    } catch (...) {
        self->failure_ = std::current_exception();
    }
    self->done_ = true;
    self->pause();
}

}  // namespace ds4::emulator
