// Attention of one query over keys that are values, too; included like matmul.h. Hidden keys are not handed in at all,
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

/// Keys that stay in the first cache while all heads read them.
constexpr int64_t kKeysAtOnce = 8;

/// Logits of n heads and m keys.
template <int n, int m>
void measure(const AttentionQuery& a, int64_t head, int64_t key, float* logits) {
    const int64_t whole = a.size / kLanes * kLanes;
    Floats acc[n][m];
    for (auto& sums : acc) {
        for (Floats& sum : sums) sum = zero();
    }
    for (int64_t i = 0; i < whole; i += kLanes) {
        Floats k[m];
        for (int j = 0; j < m; j++) k[j] = load(a.keys[key + j] + i);
        for (int h = 0; h < n; h++) {
            const Floats q = load(a.query + (head + h) * a.size + i);
            for (int j = 0; j < m; j++) acc[h][j] = fma(q, k[j], acc[h][j]);
        }
    }
    for (int h = 0; h < n; h++) {
        for (int j = 0; j < m; j++) {
            float sum = total_of(acc[h][j]);
            for (int64_t i = whole; i < a.size; i++) sum += a.query[(head + h) * a.size + i] * a.keys[key + j][i];
            logits[h * a.count + key + j] = sum * a.scale;
        }
    }
}

/// Adds the keys [first, last), weighted, to the outputs of n heads.
template <int n>
void gather(const AttentionQuery& a, int64_t head, int64_t first, int64_t last, const float* weights) {
    constexpr int wide = 2;  // vectors at once
    float* out = a.out + head * a.size;
    int64_t i = 0;
    for (; i + wide * kLanes <= a.size; i += wide * kLanes) {
        Floats acc[n][wide];
        for (int h = 0; h < n; h++) {
            for (int v = 0; v < wide; v++) acc[h][v] = load(out + h * a.size + i + v * kLanes);
        }
        for (int64_t key = first; key < last; key++) {
            const Floats k[wide] = {load(a.keys[key] + i), load(a.keys[key] + i + kLanes)};
            for (int h = 0; h < n; h++) {
                const Floats w = broadcast(weights[h * a.count + key]);
                for (int v = 0; v < wide; v++) acc[h][v] = fma(w, k[v], acc[h][v]);
            }
        }
        for (int h = 0; h < n; h++) {
            for (int v = 0; v < wide; v++) store(out + h * a.size + i + v * kLanes, acc[h][v]);
        }
    }
    for (; i < a.size; i++) {
        for (int h = 0; h < n; h++) {
            float& sum = out[h * a.size + i];
            for (int64_t key = first; key < last; key++) sum += weights[h * a.count + key] * a.keys[key][i];
        }
    }
}

/// Calls function<n>(head) for all heads, n at a time, with each few keys [from, to) in turn.
template <class F>
inline void for_heads_and_keys(const AttentionQuery& a, int64_t first, int64_t last, const F& function) {
    constexpr int heads = 4;
    for (int64_t from = 0; from < a.count; from += kKeysAtOnce) {
        const int64_t to = std::min(from + kKeysAtOnce, a.count);
        for (int64_t head = first; head < last; head += heads) {
            with_count<heads>(static_cast<int>(std::min<int64_t>(heads, last - head)),
                              [&]<int n>() { function.template operator()<n>(head, from, to); });
        }
    }
}

inline void attend(const AttentionQuery& a, int64_t first, int64_t last) {
    const auto logits = [&](int64_t head) { return a.scratch + (head - first) * a.count; };
    for_heads_and_keys(a, first, last, [&]<int n>(int64_t head, int64_t from, int64_t to) {
        int64_t key = from;
        for (; key + 2 <= to; key += 2) measure<n, 2>(a, head, key, logits(head));
        if (key < to) measure<n, 1>(a, head, key, logits(head));
    });
    for (int64_t head = first; head < last; head++) weigh(logits(head), a.count, a.sinks[head]);
    std::fill(a.out + first * a.size, a.out + last * a.size, 0.0F);
    for_heads_and_keys(a, first, last, [&]<int n>(int64_t head, int64_t from, int64_t to) {
        gather<n>(a, head, from, to, logits(head));
    });
}
