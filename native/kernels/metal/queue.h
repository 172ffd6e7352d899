#pragma once
// Metal as the launcher sees it: kernels by name, and memory by its addresses. Objective-C++ with reference counting.

#import <Metal/Metal.h>

#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "launcher.h"

namespace ds4::kernels {

/// A buffer argument: memory of ggml's or of scratch, whose address may be null.
struct Bytes {
    const void* data;
    size_t bytes;
};

template <typename T>
Bytes memory(const T* data, size_t count) {
    return {data, count * sizeof(T)};
}
Bytes memory(const DeviceMatrix& matrix);

/// Runs kernels of the embedded sources in order.
class MetalQueue {
   public:
    /// Compiles `libraries`, the texts of the kernels' files. Throws BackendError.
    explicit MetalQueue(const std::vector<std::string>& libraries);

    /// Runs a kernel with `buffers` at 0, 1, ... and `arguments` after them.
    template <typename Arguments>
    void launch(const char* kernel, int groups, int threads, const std::vector<Bytes>& buffers, const Arguments& a) {
        dispatch(kernel, groups, threads, buffers, &a, sizeof a);
    }
    /// Memory for the running piece of work: the number-th that it asks for.
    void* scratch(size_t number, size_t bytes);
    /// Hands what was launched to the device.
    void commit();
    /// Waits for all of it. Throws BackendError.
    void synchronize();

   private:
    struct Span {
        id<MTLBuffer> buffer;
        size_t offset;
    };

    struct Scratch {
        std::unique_ptr<void, decltype(&std::free)> data{nullptr, std::free};
        size_t bytes = 0;
    };

    void dispatch(const char* kernel, int groups, int threads, const std::vector<Bytes>& buffers, const void* arguments,
                  size_t bytes);
    id<MTLComputePipelineState> pipeline(const char* kernel);
    Span span(const Bytes& memory);

    id<MTLDevice> device_;
    id<MTLCommandQueue> queue_;
    NSMutableArray<id<MTLLibrary>>* libraries_;
    std::map<std::string, id<MTLComputePipelineState>> pipelines_;
    std::map<std::pair<uintptr_t, size_t>, id<MTLBuffer>> buffers_;  // by first page and length, until all has run
    std::vector<Scratch> scratch_;
    id<MTLCommandBuffer> commands_, last_;
    id<MTLComputeCommandEncoder> encoder_;
};

}  // namespace ds4::kernels
