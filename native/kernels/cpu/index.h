// Scores of compressed keys for the indexer's choice (M30); included like matmul.h. Lanes are heads, so that a key's
// sums need no adding up across a vector.

/// A key as floats.
inline const float* widened(const IndexKeys& keys, int64_t key, int64_t size, float* room) {
    const auto* data = static_cast<const std::byte*>(keys.data) + static_cast<size_t>(key) * keys.stride;
    if (!keys.half) return reinterpret_cast<const float*>(data);
    for (int64_t i = 0; i < size; i += kLanes) store(room + i, load_f16(reinterpret_cast<const uint16_t*>(data) + i));
    return room;
}

/// Products of m keys with n vectors of heads.
template <int m, int n>
void measure_heads(const IndexQuery& a, const float* const* keys, int64_t head, float* const* dots) {
    Floats acc[m][n];
    for (auto& sums : acc) {
        for (Floats& sum : sums) sum = zero();
    }
    for (int64_t i = 0; i < a.size; i++) {
        const float* q = a.query + i * a.heads + head;
        for (int j = 0; j < m; j++) {
            const Floats k = broadcast(keys[j][i]);
            for (int v = 0; v < n; v++) acc[j][v] = fma(k, load(q + v * kLanes), acc[j][v]);
        }
    }
    for (int j = 0; j < m; j++) {
        for (int v = 0; v < n; v++) store(dots[j] + head + v * kLanes, acc[j][v]);
    }
}

/// The heads' weighted sum of max(dot, 0).
inline float total_of_heads(const IndexQuery& a, const float* dots) {
    float sums[kTile] = {};
    for (int64_t head = 0; head < a.heads; head += kTile) {
        for (int64_t i = 0; i < kTile; i++) sums[i] += a.weights[head + i] * (dots[head + i] > 0 ? dots[head + i] : 0);
    }
    float total = 0;
    for (const float sum : sums) total += sum;
    return total;
}

template <int m>
void score_keys(const IndexQuery& a, const IndexKeys& keys, int64_t key, float* out) {
    constexpr int wide = 4;  // vectors at once
    const float* widest[m];
    float* dots[m];
    for (int j = 0; j < m; j++) {
        float* room = a.scratch + j * (a.size + a.heads);
        widest[j] = widened(keys, key + j, a.size, room), dots[j] = room + a.size;
    }
    for (int64_t head = 0; head < a.heads; head += wide * kLanes) {
        with_count<wide>(static_cast<int>(std::min<int64_t>(wide, (a.heads - head) / kLanes)),
                         [&]<int n>() { measure_heads<m, n>(a, widest, head, dots); });
    }
    for (int j = 0; j < m; j++) out[key + j] = total_of_heads(a, dots[j]);
}

inline void index_scores(const IndexQuery& a, const IndexKeys& keys, int64_t first, int64_t last, float* out) {
    int64_t key = first;
    for (; key + 2 <= last; key += 2) score_keys<2>(a, keys, key, out);
    if (key < last) score_keys<1>(a, keys, key, out);
}
