#pragma once
// The functions and macros that the kernels of this folder are written with. They are defined for CUDA, for HIP, and
// for the emulator, which runs the same sources on the host and checks every access (DS4_EMULATED, kernels/emulator).
//
// A kernel is a function of one struct of arguments, in namespace ds4::kernels::DS4_PLATFORM:
//
//     template <int kWave>
//     DS4_KERNEL(256) void name(NameArguments a) { ... }      // 256: the threads of a block, a multiple of the wave
//
//   DS4_DEVICE                     before the other functions that run on the device
//   Global<T>                      pointer into the device's memory; all pointers among the arguments have this type
//   DS4_SHARED(T, name, count);    array of the block, in one dimension; at most 48 KiB a block
//   Shared<T>                      pointer into such an array, for functions
//   thread(), block(), blocks()    indices in one dimension; lane<kWave>(), wave<kWave>() follow from the first
//   DS4_UNROLL                     before a loop whose bounds are constants and whose arrays belong in registers
//   barrier()                      all threads of the block, and their writes to shared and global memory
//   shuffle<kWave>(x, lane), shuffle_xor<kWave>(x, mask), wave_sum<kWave>(x), wave_max<kWave>(x)
//                                  combine all lanes of a wave; x has four bytes. A sum has the same bits in all lanes
//   atomic_add(p, i, x)            p[i] += x; returns the value before
//   to_float(x), load4(p, i)       converts Half, Bfloat and float to float; load4 reads four from p + i, aligned to
//   all exp, log, fma, maximum, kInfinity, to_bits, from_bits
//
// Each kernel file ends with a host function launch<kWave>(device, work), which all three share. The device has
//   launch(name, kernel, blocks, threads, arguments)     runs a kernel after those launched before
//   scratch<T>(name, count)        uninitialised device memory, valid for this piece of work
//
// kWave is 32 (NVIDIA, RDNA) or 64 (CDNA). Elements are read into variables of a named type (float x = a[i];, not
// auto), since the emulator's arrays return proxy objects. Blocks run in any order and do not wait for each other.

#include <cstdint>

namespace ds4::kernels::simt {

/// IEEE half precision and bfloat16, as stored in memory.
struct Half {
    uint16_t bits;
};
struct Bfloat {
    uint16_t bits;
};

struct Float4 {
    float x, y, z, w;
};

constexpr float kInfinity = __builtin_huge_valf();

}  // namespace ds4::kernels::simt

#if defined(DS4_EMULATED)
#include "emulator/simt.h"
#else
#include "gpu/simt_device.h"
#endif

namespace ds4::kernels::simt {

template <int kWave>
DS4_DEVICE int lane() {
    return thread() % kWave;
}

template <int kWave>
DS4_DEVICE int wave() {
    return thread() / kWave;
}

DS4_DEVICE float to_float(float x) { return x; }
DS4_DEVICE float to_float(Bfloat x) { return from_bits(static_cast<uint32_t>(x.bits) << 16); }

template <typename T>
DS4_DEVICE Float4 load4(Global<T> p, int64_t i) {
    const auto four = read4(p, i);
    return {to_float(four.x[0]), to_float(four.x[1]), to_float(four.x[2]), to_float(four.x[3])};
}

}  // namespace ds4::kernels::simt
