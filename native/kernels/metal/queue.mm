#include "metal/queue.h"

#include <unistd.h>

#include <cstdlib>

#include "ds4/errors.h"

namespace ds4::kernels {
namespace {

[[noreturn]] void fail(const std::string& what, const std::string& why) {
    throw BackendError(what + " on Metal: " + why + "; set DS4_OPS=generic to do without ds4py's own kernels");
}

std::string reason(NSError* error) { return error ? error.localizedDescription.UTF8String : "no reason given"; }

}  // namespace

Bytes memory(const DeviceMatrix& m) {
    const size_t count = static_cast<size_t>(m.columns) * m.rows;
    if (m.type == Element::q8_0) return {m.data, count / 32 * 34};
    return {m.data, count * (m.type == Element::f32 ? 4 : 2)};
}

MetalQueue::MetalQueue(const std::vector<std::string>& libraries)
    : device_(MTLCreateSystemDefaultDevice()), libraries_([NSMutableArray array]) {
    if (!device_) fail("opening the device", "there is none");
    // ggml's addresses are the host's there only.
    if (!device_.hasUnifiedMemory) fail("opening the device", "its memory is not the host's");
    if (!(queue_ = [device_ newCommandQueue])) fail("opening the device", "no command queue");
    MTLCompileOptions* options = [MTLCompileOptions new];
    options.fastMathEnabled = NO;  // its infinities and NaN may be anything, and kernels compare with both
    for (const std::string& text : libraries) {
        NSError* error = nil;
        id<MTLLibrary> library = [device_ newLibraryWithSource:@(text.c_str()) options:options error:&error];
        if (!library) fail("compiling the kernels", reason(error));
        [libraries_ addObject:library];
    }
}

id<MTLComputePipelineState> MetalQueue::pipeline(const char* kernel) {
    const auto known = pipelines_.find(kernel);
    if (known != pipelines_.end()) return known->second;
    for (id<MTLLibrary> library in libraries_) {
        id<MTLFunction> function = [library newFunctionWithName:@(kernel)];
        if (!function) continue;
        NSError* error = nil;
        id<MTLComputePipelineState> made = [device_ newComputePipelineStateWithFunction:function error:&error];
        if (!made) fail(std::string("preparing ") + kernel, reason(error));
        return pipelines_[kernel] = made;
    }
    fail(std::string("looking for ") + kernel, "there is no such kernel");
}

// ggml keeps tensors in page-aligned memory that host and device share, and does not say which of its buffers holds
// one. The pages of a tensor are given a buffer of their own, which is another name for the same memory.
MetalQueue::Span MetalQueue::span(const Bytes& memory) {
    const uintptr_t page = static_cast<uintptr_t>(getpagesize()), at = reinterpret_cast<uintptr_t>(memory.data);
    const uintptr_t first = at / page * page, end = (at + memory.bytes + page - 1) / page * page;
    __strong id<MTLBuffer>& buffer = buffers_[{first, end - first}];
    if (!buffer) {
        buffer = [device_ newBufferWithBytesNoCopy:reinterpret_cast<void*>(first)
                                            length:end - first
                                           options:MTLResourceStorageModeShared
                                       deallocator:nil];
        if (!buffer) fail("reaching memory of ggml's", "no buffer of " + std::to_string(end - first) + " bytes");
    }
    return {buffer, at - first};
}

void MetalQueue::dispatch(const char* kernel, int groups, int threads, const std::vector<Bytes>& buffers,
                          const void* arguments, size_t bytes) {
    // The calling thread may be one without a pool: what Metal leaves to one would stay until it ends.
    @autoreleasepool {
        id<MTLComputePipelineState> state = pipeline(kernel);
        if (state.threadExecutionWidth != 32 ||
            state.maxTotalThreadsPerThreadgroup < static_cast<NSUInteger>(threads)) {
            fail(std::string("running ") + kernel, "a threadgroup has at most " +
                                                       std::to_string(state.maxTotalThreadsPerThreadgroup) +
                                                       " threads in " + std::to_string(state.threadExecutionWidth) +
                                                       " lanes, wanted " + std::to_string(threads) + " in 32");
        }
        if (!encoder_) {
            commands_ = [queue_ commandBuffer];
            encoder_ = [commands_ computeCommandEncoderWithDispatchType:MTLDispatchTypeSerial];
        }
        [encoder_ setComputePipelineState:state];
        NSUInteger index = 0;
        for (const Bytes& b : buffers) {
            const Span s = b.data ? span(b) : Span{nil, 0};
            [encoder_ setBuffer:s.buffer offset:s.offset atIndex:index++];
        }
        [encoder_ setBytes:arguments length:bytes atIndex:index];
        [encoder_ dispatchThreadgroups:MTLSizeMake(groups, 1, 1) threadsPerThreadgroup:MTLSizeMake(threads, 1, 1)];
        // Buffers that share pages are different ones to Metal's own tracking.
        [encoder_ memoryBarrierWithScope:MTLBarrierScopeBuffers];
    }
}

void* MetalQueue::scratch(size_t number, size_t bytes) {
    if (scratch_.size() <= number) scratch_.resize(number + 1);
    Scratch& s = scratch_[number];
    if (s.bytes < bytes) {
        synchronize();
        const size_t page = static_cast<size_t>(getpagesize());
        s.bytes = (bytes + page - 1) / page * page;
        s.data.reset(std::aligned_alloc(page, s.bytes));
        if (!s.data) fail("taking scratch memory", "no room for " + std::to_string(s.bytes) + " bytes");
    }
    return s.data.get();
}

void MetalQueue::commit() {
    if (!encoder_) return;
    [encoder_ endEncoding];
    [commands_ commit];
    last_ = commands_;
    encoder_ = nil;
    commands_ = nil;
}

void MetalQueue::synchronize() {
    commit();
    if (!last_) return;
    [last_ waitUntilCompleted];
    NSError* error = last_.error;
    last_ = nil;
    buffers_.clear();  // what ggml frees may come back at the same address
    if (error) fail("running kernels", reason(error));
}

}  // namespace ds4::kernels
