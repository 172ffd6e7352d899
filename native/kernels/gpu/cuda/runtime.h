#pragma once
// CUDA's runtime by the names that gpu_launcher.h uses.

#include <cuda_runtime.h>

namespace ds4::kernels::cuda::runtime {

using Status = cudaError_t;
using Stream = cudaStream_t;
constexpr Status kSuccess = cudaSuccess;
constexpr const char* kName = "CUDA";

inline const char* message(Status s) { return cudaGetErrorString(s); }
inline Status last_error() { return cudaGetLastError(); }
inline Status get_device(int* device) { return cudaGetDevice(device); }
inline Status set_device(int device) { return cudaSetDevice(device); }
/// Creates a stream that does not wait for the default stream, on which ggml does not compute either.
inline Status create_stream(Stream* s) { return cudaStreamCreateWithFlags(s, cudaStreamNonBlocking); }
inline Status destroy_stream(Stream s) { return cudaStreamDestroy(s); }
inline Status synchronize(Stream s) { return cudaStreamSynchronize(s); }
inline Status allocate(void** data, size_t bytes) { return cudaMalloc(data, bytes); }
inline Status free_memory(void* data) { return cudaFree(data); }

}  // namespace ds4::kernels::cuda::runtime
