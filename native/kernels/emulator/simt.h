#pragma once
// The definitions of gpu/simt.h for the emulator. Only that header includes this one.

#include <bit>
#include <cmath>
#include <type_traits>

#include "emulator/half.h"
#include "emulator/pointer.h"
#include "emulator/wave.h"

#define DS4_PLATFORM emulated
#define DS4_KERNEL(threads) inline
#define DS4_DEVICE inline
#define DS4_UNROLL

namespace ds4::kernels::simt {

using emulator::Place;

template <typename T>
using Global = emulator::Pointer<T>;
template <typename T>
using Shared = emulator::Pointer<T>;

inline uint32_t to_bits(float x) { return std::bit_cast<uint32_t>(x); }
inline float from_bits(uint32_t x) { return std::bit_cast<float>(x); }

inline int thread() { return emulator::current().thread(); }
inline int block() { return emulator::current().index(); }
inline int blocks() { return emulator::current().launch().blocks; }
inline void barrier(Place place = Place::current()) { emulator::current().barrier(place); }

/// Throws Fault if the kernel was compiled for another wave size than that of the launch.
template <int kWave>
void check_wave() {
    if (emulator::current().launch().wave != kWave) emulator::fault("is compiled for other waves than it is run with");
}

template <int kWave, typename T>
T shuffle(T x, int from, Place place = Place::current()) {
    check_wave<kWave>();
    return emulator::shuffle(x, from, place);
}

template <int kWave, typename T>
T shuffle_xor(T x, int mask, Place place = Place::current()) {
    return shuffle<kWave>(x, (thread() % kWave) ^ mask, place);
}

template <int kWave>
float wave_sum(float x, Place place = Place::current()) {
    check_wave<kWave>();
    return emulator::reduce(x, [](float a, float b) { return a + b; }, place);
}

template <int kWave>
float wave_max(float x, Place place = Place::current()) {
    check_wave<kWave>();
    return emulator::reduce(x, [](float a, float b) { return std::fmax(a, b); }, place);
}

template <typename T>
T atomic_add(Global<T> p, int64_t i, std::type_identity_t<T> x) {
    T& sum = p.atomic(i);
    const T before = sum;
    sum += x;
    return before;
}

/// Four consecutive elements that are read at once. Their address must be a multiple of their size.
template <typename T>
struct Four {
    std::remove_const_t<T> x[4];
};

template <typename T>
Four<T> read4(Global<T> p, int64_t i) {
    if (!p.aligned(i, 4 * sizeof(T))) emulator::fault("reads four elements at once where they are not aligned");
    return {{p[i], p[i + 1], p[i + 2], p[i + 3]}};
}

inline float exp(float x) { return std::exp(x); }
inline float log(float x) { return std::log(x); }
inline float fma(float a, float b, float c) { return std::fma(a, b, c); }
inline float maximum(float a, float b) { return std::fmax(a, b); }
inline float to_float(Half x) { return emulator::half_to_float(x.bits); }

}  // namespace ds4::kernels::simt
