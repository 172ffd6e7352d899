#pragma once
// HIP's runtime by the names that gpu_launcher.h uses.

#include <hip/hip_runtime.h>

namespace ds4::kernels::hip::runtime {

using Status = hipError_t;
using Stream = hipStream_t;
constexpr Status kSuccess = hipSuccess;
constexpr const char* kName = "HIP";

inline const char* message(Status s) { return hipGetErrorString(s); }
inline Status last_error() { return hipGetLastError(); }
inline Status get_device(int* device) { return hipGetDevice(device); }
inline Status set_device(int device) { return hipSetDevice(device); }
/// Creates a stream that does not wait for the default stream, on which ggml does not compute either.
inline Status create_stream(Stream* s) { return hipStreamCreateWithFlags(s, hipStreamNonBlocking); }
inline Status destroy_stream(Stream s) { return hipStreamDestroy(s); }
inline Status synchronize(Stream s) { return hipStreamSynchronize(s); }
inline Status allocate(void** data, size_t bytes) { return hipMalloc(data, bytes); }
inline Status free_memory(void* data) { return hipFree(data); }

}  // namespace ds4::kernels::hip::runtime
