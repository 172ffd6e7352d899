#include <algorithm>
#include <vector>

#include "ops/cpu/nodes.h"

namespace ds4::ops::cpu {
namespace {

/// Which rows each chosen expert has.
struct Groups {
    std::vector<int32_t> experts;          // those with rows, ascending
    std::vector<int32_t> first;            // where each one's rows begin, and the end
    std::vector<int32_t> inputs, outputs;  // of all rows, by expert

    /// selection [used, n]; an input row serves all of a token's choices, or (`own`) one of them.
    void make(const ggml_tensor* selection, int64_t count, bool own) {
        const int64_t used = selection->ne[0], n = selection->ne[1];
        std::vector<int32_t> at(count + 1);
        const auto expert = [&](int64_t i) {
            const char* row = static_cast<const char*>(selection->data) + i / used * selection->nb[1];
            return reinterpret_cast<const int32_t*>(row)[i % used];
        };
        for (int64_t i = 0; i < used * n; i++) at[expert(i) + 1]++;
        experts.clear(), first.clear();
        for (int32_t e = 0; e < count; e++) {
            if (at[e + 1]) experts.push_back(e), first.push_back(at[e]);
            at[e + 1] += at[e];
        }
        first.push_back(static_cast<int32_t>(used * n));
        inputs.resize(used * n), outputs.resize(used * n);
        for (int64_t i = 0; i < used * n; i++) {
            const int32_t to = at[expert(i)]++;
            inputs[to] = static_cast<int32_t>(own ? i : i / used);
            outputs[to] = static_cast<int32_t>(i);
        }
    }
};

/// The tiles of all chosen experts are shared out in one sequence: each has as many bytes.
void multiply_experts(ggml_tensor* out, int ith, int nth, void*) {
    const ggml_tensor *w = out->src[0], *rows = out->src[1], *selection = out->src[2];
    const kernels::PackedTensor& packed = *kernels::packed_of(w);
    thread_local Groups groups;
    groups.make(selection, packed.count, ggml_nrows(rows) == ggml_nelements(selection));
    const int64_t tiles = kernels::tiles(packed.rows);
    const Part part(tiles * std::ssize(groups.experts), ith, nth);
    for (int64_t i = part.first / tiles; i < std::ssize(groups.experts) && i * tiles < part.last; i++) {
        const int64_t first = std::max<int64_t>(part.first - i * tiles, 0),
                      last = std::min(part.last - i * tiles, tiles);
        const int32_t begin = groups.first[i];
        const kernels::Rows inputs{rows->data, rows->nb[1], groups.first[i + 1] - begin, &groups.inputs[begin]};
        const kernels::Outputs outputs{static_cast<float*>(out->data), out->ne[0], &groups.outputs[begin]};
        kernels().product(packed.matrix(w, groups.experts[i]), inputs, first, last, outputs);
    }
}

}  // namespace

ggml_tensor* expert_product(const Build& b, ggml_tensor* w, ggml_tensor* x, ggml_tensor* selection) {
    const kernels::PackedTensor& packed = *kernels::packed_of(w);
    ggml_tensor* sources[] = {w, rows_for(b, packed.format, x), selection};
    return ggml_custom_4d(b.ctx, GGML_TYPE_F32, packed.rows, selection->ne[0], selection->ne[1], 1, sources, 3,
                          multiply_experts, GGML_N_TASKS_MAX, nullptr);
}

}  // namespace ds4::ops::cpu
