#pragma once
// The choices of several rows, by expert: so each expert's weights are read once for all of them.

#include <vector>

#include "ggml.h"
#include "ops/cpu/nodes.h"

namespace ds4::ops::cpu {

struct Groups {
    std::vector<int32_t> experts;        // those that anyone chose, ascending
    std::vector<int32_t> first;          // where each one's choices begin, and the end
    std::vector<int32_t> choices, rows;  // of all experts: choice k of row r is k + used * r

    /// Groups the rows of selection [used, n] by expert, among `count` experts.
    void make(const ggml_tensor* selection, int64_t count) {
        const int64_t used = selection->ne[0], n = selection->ne[1];
        at_.assign(count + 1, 0);
        const auto expert = [&](int64_t i) { return element<int32_t>(selection, i % used, i / used); };
        for (int64_t i = 0; i < used * n; i++) at_[expert(i) + 1]++;
        experts.clear(), first.clear();
        for (int32_t e = 0; e < count; e++) {
            if (at_[e + 1]) experts.push_back(e), first.push_back(at_[e]);
            at_[e + 1] += at_[e];
        }
        first.push_back(static_cast<int32_t>(used * n));
        choices.resize(used * n), rows.resize(used * n);
        for (int64_t i = 0; i < used * n; i++) {
            const int32_t to = at_[expert(i)]++;
            choices[to] = static_cast<int32_t>(i);
            rows[to] = static_cast<int32_t>(i / used);
        }
    }

    int64_t size(int64_t group) const { return first[group + 1] - first[group]; }

   private:
    std::vector<int32_t> at_;
};

}  // namespace ds4::ops::cpu
