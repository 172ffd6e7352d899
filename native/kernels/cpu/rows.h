// Steps on rows of floats between the products; included like matmul.h.

/// Approximates e^x for x <= 0 (7 digits), in operations that the compiler makes vectors of. Below -87 it stays at
/// e^-87.
inline float exponential(float x) {
    x = x < -87.0F ? -87.0F : x;
    const int32_t power = nearest(x * 1.44269504F);
    const auto n = static_cast<float>(power);
    const float r = (x - n * 0.693359375F) + n * 2.12194440e-4F;  // ln 2 in two parts
    float p = 1.0F / 720;
    for (const float factor : {1.0F / 120, 1.0F / 24, 1.0F / 6, 0.5F, 1.0F, 1.0F}) p = p * r + factor;
    return p * std::bit_cast<float>((power + 127) << 23);
}

inline float total_of(Floats a) {
    alignas(64) float lanes[kLanes];
    store(lanes, a);
    float sum = 0;
    for (const float lane : lanes) sum += lane;
    return sum;
}

/// silu(min(gate, clamp)) * clip(up, -clamp, clamp), in place of gate.
inline void swiglu(float* gate, const float* up, int64_t count, float clamp) {
    for (int64_t i = 0; i < count; i++) {
        const float g = gate[i] > clamp ? clamp : gate[i];
        const float above = up[i] > clamp ? clamp : up[i], u = above < -clamp ? -clamp : above;
        const float e = exponential(g < 0 ? g : -g);
        gate[i] = (g < 0 ? g * e : g) / (1.0F + e) * u;
    }
}

inline float squares(const float* x, int64_t count) {
    constexpr int chains = 4;
    Floats acc[chains];
    for (Floats& sum : acc) sum = zero();
    int64_t i = 0;
    for (; i + chains * kLanes <= count; i += chains * kLanes) {
        for (int c = 0; c < chains; c++) {
            const Floats v = load(x + i + c * kLanes);
            acc[c] = fma(v, v, acc[c]);
        }
    }
    float sum = total_of(add(add(acc[0], acc[1]), add(acc[2], acc[3])));
    for (; i < count; i++) sum += x[i] * x[i];
    return sum;
}

inline void weighted_sum(const float* const* x, const float* weights, int64_t sources, int64_t count, float* out) {
    int64_t i = 0;
    for (; i + kLanes <= count; i += kLanes) {
        Floats sum = zero();
        for (int64_t s = 0; s < sources; s++) sum = fma(broadcast(weights[s]), load(x[s] + i), sum);
        store(out + i, sum);
    }
    for (; i < count; i++) {
        float sum = 0;
        for (int64_t s = 0; s < sources; s++) sum += weights[s] * x[s][i];
        out[i] = sum;
    }
}

inline void rms_norm(const float* x, const float* weight, int64_t count, float epsilon, float* out) {
    const float scale = 1.0F / std::sqrt(squares(x, count) / static_cast<float>(count) + epsilon);
    if (!weight) {
        for (int64_t i = 0; i < count; i++) out[i] = x[i] * scale;
        return;
    }
    for (int64_t i = 0; i < count; i++) out[i] = x[i] * scale * weight[i];
}

/// Computes up to 16 columns of softmax_mean.
template <int columns>
inline void mean_columns(const float* const* values, const float* const* scores, int64_t slots, int64_t at,
                         float* out) {
    float most[columns], sums[columns], means[columns];
    for (int c = 0; c < columns; c++) most[c] = scores[0][at + c], sums[c] = means[c] = 0;
    for (int64_t s = 1; s < slots; s++) {
        for (int c = 0; c < columns; c++) most[c] = std::max(most[c], scores[s][at + c]);
    }
    for (int64_t s = 0; s < slots; s++) {
        for (int c = 0; c < columns; c++) {
            const float weight = exponential(scores[s][at + c] - most[c]);
            sums[c] += weight;
            means[c] += weight * values[s][at + c];
        }
    }
    for (int c = 0; c < columns; c++) out[at + c] = means[c] / sums[c];
}

inline void softmax_mean(const float* const* values, const float* const* scores, int64_t slots, int64_t count,
                         float* out) {
    int64_t i = 0;
    for (; i + 16 <= count; i += 16) mean_columns<16>(values, scores, slots, i, out);
    for (; i < count; i++) mean_columns<1>(values, scores, slots, i, out);
}
