// Attention of one query over keys that are values, too; included like product.h. Hidden keys are not handed in at all,
// so that a query's bits do not depend on what lies between those that it sees.

/// Turns logits into weights, in place; the sink takes its share and gives nothing.
inline void weigh(float* logits, int64_t count, float sink) {
    float most = sink;
    for (int64_t i = 0; i < count; i++) most = std::max(most, logits[i]);
    constexpr int chains = 16;
    float sums[chains] = {};
    for (int64_t i = 0; i < count; i++) logits[i] = exponential(logits[i] - most);
    for (int64_t i = 0; i < count; i++) sums[i % chains] += logits[i];
    float total = exponential(sink - most);
    for (const float sum : sums) total += sum;
    for (int64_t i = 0; i < count; i++) logits[i] /= total;
}

/// Logits of n heads: [n][stride].
template <int n>
void measure(const AttentionQuery& a, int64_t head, float* logits) {
    const int64_t whole = a.size / kLanes * kLanes;
    for (int64_t key = 0; key < a.count; key++) {
        Floats acc[n];
        for (Floats& sum : acc) sum = zero();
        for (int64_t i = 0; i < whole; i += kLanes) {
            const Floats k = load(a.keys[key] + i);
            for (int h = 0; h < n; h++) acc[h] = fma(load(a.query + (head + h) * a.size + i), k, acc[h]);
        }
        for (int h = 0; h < n; h++) {
            float sum = total_of(acc[h]);
            for (int64_t i = whole; i < a.size; i++) sum += a.query[(head + h) * a.size + i] * a.keys[key][i];
            logits[h * a.count + key] = sum * a.scale;
        }
    }
}

/// Weighted sums of the keys for n heads.
template <int n>
void gather(const AttentionQuery& a, int64_t head, const float* weights) {
    constexpr int wide = 2;  // vectors at once
    int64_t i = 0;
    for (; i + wide * kLanes <= a.size; i += wide * kLanes) {
        Floats acc[n][wide];
        for (auto& sums : acc) {
            for (Floats& sum : sums) sum = zero();
        }
        for (int64_t key = 0; key < a.count; key++) {
            const Floats k[wide] = {load(a.keys[key] + i), load(a.keys[key] + i + kLanes)};
            for (int h = 0; h < n; h++) {
                const Floats w = broadcast(weights[h * a.count + key]);
                for (int v = 0; v < wide; v++) acc[h][v] = fma(w, k[v], acc[h][v]);
            }
        }
        for (int h = 0; h < n; h++) {
            for (int v = 0; v < wide; v++) store(a.out + (head + h) * a.size + i + v * kLanes, acc[h][v]);
        }
    }
    for (; i < a.size; i++) {
        for (int h = 0; h < n; h++) {
            float sum = 0;
            for (int64_t key = 0; key < a.count; key++) sum += weights[h * a.count + key] * a.keys[key][i];
            a.out[(head + h) * a.size + i] = sum;
        }
    }
}

inline void attend(const AttentionQuery& a, int64_t first, int64_t last) {
    for (int64_t head = first; head < last; head += kAttentionHeads) {
        const int count = static_cast<int>(std::min<int64_t>(kAttentionHeads, last - head));
        with_count<kAttentionHeads>(count, [&]<int n>() {
            measure<n>(a, head, a.scratch);
            for (int h = 0; h < n; h++) weigh(a.scratch + h * a.count, a.count, a.sinks[head + h]);
            gather<n>(a, head, a.scratch);
        });
    }
}
