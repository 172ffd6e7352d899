#pragma once
// The definitions of simt.h for the compilers of CUDA and HIP. Those for HIP are clang builtins, so that device code
// needs neither HIP's headers nor its libraries.

#include <cstdint>

#if defined(__HIP__)
#define DS4_PLATFORM hip
#ifndef __global__
#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __shared__ __attribute__((shared))
#endif
#define DS4_KERNEL(threads) __global__ __attribute__((amdgpu_flat_work_group_size(threads, threads)))
#define DS4_DEVICE __device__ inline __attribute__((always_inline))
#else
#include <cuda_fp16.h>
#define DS4_PLATFORM cuda
#define DS4_KERNEL(threads) __global__ __launch_bounds__(threads, 1)
#define DS4_DEVICE __device__ __forceinline__
#endif
#define DS4_SHARED(type, name, count) __shared__ type name[count]
#define DS4_UNROLL _Pragma("unroll")

namespace ds4::kernels::simt {

template <typename T>
using Global = T*;
template <typename T>
using Shared = T*;

/// Reinterprets the bits of a four-byte type as another one.
template <typename To, typename From>
DS4_DEVICE To cast(From x) {
    static_assert(sizeof(To) == 4 && sizeof(From) == 4, "four bytes");
    To y;
    __builtin_memcpy(&y, &x, 4);
    return y;
}

DS4_DEVICE uint32_t to_bits(float x) { return cast<uint32_t>(x); }
DS4_DEVICE float from_bits(uint32_t x) { return cast<float>(x); }

#if defined(__HIP__)

DS4_DEVICE int thread() { return static_cast<int>(__builtin_amdgcn_workitem_id_x()); }
DS4_DEVICE int block() { return static_cast<int>(__builtin_amdgcn_workgroup_id_x()); }
DS4_DEVICE int blocks() {
    return static_cast<int>(__builtin_amdgcn_grid_size_x() / __builtin_amdgcn_workgroup_size_x());
}
DS4_DEVICE void barrier() {
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
    __builtin_amdgcn_s_barrier();
    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}

template <int kWave, typename T>
DS4_DEVICE T shuffle(T x, int from) {
    return cast<T>(__builtin_amdgcn_ds_bpermute(4 * from, cast<int>(x)));
}

template <typename T>
DS4_DEVICE T atomic_add(Global<T> p, int64_t i, T x) {
    return __hip_atomic_fetch_add(p + i, x, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
}

DS4_DEVICE float exp(float x) { return __builtin_expf(x); }
DS4_DEVICE float log(float x) { return __builtin_logf(x); }
DS4_DEVICE float fma(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
DS4_DEVICE float maximum(float a, float b) { return __builtin_fmaxf(a, b); }
DS4_DEVICE float to_float(Half x) { return static_cast<float>(__builtin_bit_cast(_Float16, x.bits)); }

#else

DS4_DEVICE int thread() { return static_cast<int>(threadIdx.x); }
DS4_DEVICE int block() { return static_cast<int>(blockIdx.x); }
DS4_DEVICE int blocks() { return static_cast<int>(gridDim.x); }
DS4_DEVICE void barrier() { __syncthreads(); }

template <int kWave, typename T>
DS4_DEVICE T shuffle(T x, int from) {
    return __shfl_sync(0xffffffffu, x, from);
}

template <typename T>
DS4_DEVICE T atomic_add(Global<T> p, int64_t i, T x) {
    return atomicAdd(p + i, x);
}

DS4_DEVICE float exp(float x) { return expf(x); }
DS4_DEVICE float log(float x) { return logf(x); }
DS4_DEVICE float fma(float a, float b, float c) { return fmaf(a, b, c); }
DS4_DEVICE float maximum(float a, float b) { return fmaxf(a, b); }
DS4_DEVICE float to_float(Half x) { return __half2float(__ushort_as_half(x.bits)); }

#endif

template <int kWave, typename T>
DS4_DEVICE T shuffle_xor(T x, int mask) {
    return shuffle<kWave>(x, (thread() % kWave) ^ mask);
}

template <int kWave>
DS4_DEVICE float wave_sum(float x) {
    DS4_UNROLL
    for (int mask = kWave / 2; mask > 0; mask /= 2) x += shuffle_xor<kWave>(x, mask);
    return x;
}

template <int kWave>
DS4_DEVICE float wave_max(float x) {
    DS4_UNROLL
    for (int mask = kWave / 2; mask > 0; mask /= 2) x = maximum(x, shuffle_xor<kWave>(x, mask));
    return x;
}

/// Four consecutive elements that are read at once. Their address must be a multiple of their size.
template <typename T>
struct alignas(4 * sizeof(T)) Four {
    T x[4];
};

template <typename T>
DS4_DEVICE Four<T> read4(const T* p, int64_t i) {
    return *reinterpret_cast<const Four<T>*>(p + i);
}

}  // namespace ds4::kernels::simt
