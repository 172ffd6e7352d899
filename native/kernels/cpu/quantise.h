// Quantising of rows; included like matmul.h. Plain loops: the compiler makes vectors of them.

/// The nearest whole number (ties to even) of |x| < 2^22: adding this leaves no bits for a fraction.
inline int32_t nearest(float x) {
    constexpr float shift = 12582912.0F;  // 1.5 * 2^23
    return std::bit_cast<int32_t>(x + shift) - std::bit_cast<int32_t>(shift);
}

inline void quantise_block(const float* x, int8_t* q, float* d, int32_t* sums) {
    // Without their sign, the bits of floats are in the order of magnitudes; not a number is above all.
    int32_t greatest = 0;
    for (int i = 0; i < 32; i++) greatest = std::max(greatest, std::bit_cast<int32_t>(x[i]) & 0x7FFF'FFFF);
    const float most = std::bit_cast<float>(greatest);
    const float inverse = most > 1e-30F ? 127.0F / most : 0.0F;
    *d = most / 127.0F;
    for (int half = 0; half < 2; half++) {
        int32_t sum = 0;
        for (int i = 16 * half; i < 16 * half + 16; i++) {
            const int32_t value = nearest(x[i] * inverse);
            q[i] = static_cast<int8_t>(value);
            sum += value;
        }
        sums[half] = sum;
    }
}

inline void quantise(const float* row, int64_t columns, void* out) {
    auto* q = static_cast<int8_t*>(out);
    auto* d = reinterpret_cast<float*>(q + columns);
    auto* sums = reinterpret_cast<int32_t*>(d + columns / 32);
    for (int64_t block = 0; block < columns / 32; block++) {
        quantise_block(row + block * 32, q + block * 32, d + block, sums + 2 * block);
    }
}
