#pragma once
// Nodes that the CPU kernels compute. ggml's threads run them; a scheduler keeps them on the CPU.

#include <algorithm>
#include <cstring>
#include <initializer_list>

#include "cpu/packed_tensor.h"
#include "ops/ops.h"

namespace ds4::ops::cpu {

/// Part `ith` of `nth` of [0, count).
struct Part {
    int64_t first, last;
    Part(int64_t count, int ith, int nth) : first(count * ith / nth), last(count * (ith + 1) / nth) {}
};

/// Row i of matrix j of x.
template <class T = const float>
T* row(const ggml_tensor* x, int64_t i, int64_t j = 0) {
    return reinterpret_cast<T*>(static_cast<char*>(x->data) + i * x->nb[1] + j * x->nb[2]);
}

/// Element k of row i.
template <class T>
T element(const ggml_tensor* x, int64_t k, int64_t i) {
    return row<const T>(x, i)[k];
}

struct NoOptions {};

/// A node of this type and shape that `run` computes from the sources, those that are not null, with options that it
/// finds by options_of().
template <class Options = NoOptions>
ggml_tensor* node(const Build& b, ggml_type type, std::initializer_list<int64_t> shape,
                  std::initializer_list<ggml_tensor*> sources, ggml_custom_op_t run, const Options& options = {}) {
    static_assert(sizeof(Options) <= GGML_MAX_OP_PARAMS / 2);  // ggml keeps its own in the first half
    int64_t ne[4] = {1, 1, 1, 1};
    std::copy(shape.begin(), shape.end(), ne);
    ggml_tensor* all[GGML_MAX_SRC];
    int count = 0;
    for (ggml_tensor* source : sources) {
        if (source) all[count++] = source;
    }
    ggml_tensor* made =
        ggml_custom_4d(b.ctx, type, ne[0], ne[1], ne[2], ne[3], all, count, run, GGML_N_TASKS_MAX, nullptr);
    std::memcpy(reinterpret_cast<char*>(made->op_params) + GGML_MAX_OP_PARAMS / 2, &options, sizeof options);
    return made;
}

template <class Options>
Options options_of(const ggml_tensor* made) {
    Options options;
    std::memcpy(&options, reinterpret_cast<const char*>(made->op_params) + GGML_MAX_OP_PARAMS / 2, sizeof options);
    return options;
}

/// The kernels that all nodes use: the fastest this processor runs.
const kernels::Kernels& kernels();

/// Rows of x [columns, ...] in the layout that products of this format read; x itself for floats. Rows are quantised
/// once, however many products read it.
ggml_tensor* rows_for(const Build& b, kernels::Format format, ggml_tensor* x);

/// W x for packed W and x [columns, n]; with g matrices in W, x [columns, g, n] and each has inputs of its own.
/// Returns [rows * g, n].
ggml_tensor* matmul(const Build& b, ggml_tensor* w, ggml_tensor* x);

/// Implements ops::attention. Reads only the keys that a query sees.
ggml_tensor* attention(const Build& b, const AttentionInput& in);

/// The most streams that the nodes of hyper-connections take.
constexpr int64_t kMostStreams = 8;
/// Implements ops::hc_open for packed floats.
HcInput hc_open(const Build& b, ggml_tensor* x, const HcWeights& w, ggml_tensor* norm, const HcOptions& options);
/// Implements ops::hc_expand.
ggml_tensor* hc_expand(const Build& b, ggml_tensor* y, ggml_tensor* x, const HcMix& mix);

/// Implements ops::rms_norm.
ggml_tensor* rms_norm(const Build& b, ggml_tensor* x, ggml_tensor* weight, float epsilon);

/// Implements ops::compress.
ggml_tensor* compress(const Build& b, const CompressInput& in);

/// Implements ops::index_scores. Hidden keys are not read.
ggml_tensor* index_scores(const Build& b, ggml_tensor* q, ggml_tensor* keys, ggml_tensor* weights, ggml_tensor* mask);

/// Implements ops::top_rows.
ggml_tensor* top_rows(const Build& b, ggml_tensor* scores, int64_t count);
/// The indices of the `chosen` greatest of a row, ascending; of equal ones the first, and NaN is the least.
void greatest(const float* row, int64_t count, int32_t* chosen, int64_t wanted);

/// Implements ops::expert_matmul for packed W: reads the matrices that any row has chosen, each once.
ggml_tensor* expert_matmul(const Build& b, ggml_tensor* w, ggml_tensor* x, ggml_tensor* selection);

/// Implements ops::router_scores for a packed router.
ggml_tensor* router_scores(const Build& b, ggml_tensor* router, ggml_tensor* h);
/// Implements ops::route.
Routes route(const Build& b, ggml_tensor* scores, const RouteBy& by, const RouteOptions& options);
/// Implements ops::moe for weights that are all packed; experts are added in ascending order, after the shared one.
/// Without shared weights it is the sum of the routed ones.
ggml_tensor* moe(const Build& b, ggml_tensor* h, const Routes& routes, const MoeWeights& w, const MoeOptions& options);

}  // namespace ds4::ops::cpu
