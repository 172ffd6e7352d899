#pragma once
// Operations of a wave (warp, simdgroup), for the functions of simt.h and of Metal.

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "emulator/block.h"

namespace ds4::emulator {

/// The values of all lanes of a wave.
template <typename T>
struct Lanes {
    const uint64_t* bits;

    T operator[](int lane) const {
        T x;
        std::memcpy(&x, &bits[lane], sizeof(T));
        return x;
    }
};

template <typename T>
Lanes<T> exchange(T x, const Place& place) {
    static_assert(sizeof(T) == 4, "lanes exchange four bytes");
    uint64_t bits = 0;
    std::memcpy(&bits, &x, sizeof(T));
    return {current().exchange(bits, place)};
}

template <typename T>
T shuffle(T x, int from, const Place& place) {
    const Lanes<T> all = exchange(x, place);
    const int wave = current().launch().wave;
    if (from < 0 || from >= wave) {
        fault("asks lane " + std::to_string(from) + " of a wave of " + std::to_string(wave) + ": out of bounds");
    }
    return all[from];
}

/// Combines the values of all lanes in the order of a butterfly of shuffles, so that every lane gets the same bits.
template <typename T, typename F>
T reduce(T x, F combine, const Place& place) {
    const Lanes<T> all = exchange(x, place);
    T values[kWidestWave];
    int count = current().launch().wave;
    for (int i = 0; i < count; i++) values[i] = all[i];
    while (count > 1) {
        count /= 2;
        for (int i = 0; i < count; i++) values[i] = combine(values[i], values[i + count]);
    }
    return values[0];
}

}  // namespace ds4::emulator
