#pragma once
// Making and filling the inputs of a graph.

#include <cstdint>
#include <vector>

#include "ggml-backend.h"

namespace ds4::graph {

/// Makes inputs for one device (an index of weights::DeviceMap), where they are read; the tensor carries the index.
struct InputMaker {
    ggml_context* ctx;
    int device;

    ggml_tensor* operator()(ggml_type type, int64_t n0, int64_t n1 = 1, int64_t n2 = 1) const {
        ggml_tensor* t = ggml_new_tensor_3d(ctx, type, n0, n1, n2);
        ggml_set_input(t);
        t->op_params[0] = device;
        return t;
    }
};
inline int device_of_input(const ggml_tensor* t) { return t->op_params[0]; }

/// Whether the graph reads this input: nothing else gets memory.
inline bool used(const ggml_tensor* t) { return t && t->buffer; }

/// Fills a used input with value(index) over all its elements.
template <typename T, typename F>
void fill(ggml_tensor* t, F value) {
    if (!used(t)) return;
    std::vector<T> data(ggml_nelements(t));
    for (size_t i = 0; i < data.size(); i++) data[i] = static_cast<T>(value(static_cast<int64_t>(i)));
    ggml_backend_tensor_set(t, data.data(), 0, data.size() * sizeof(T));
}

/// a modulo n, never negative.
inline int64_t mod(int64_t a, int64_t n) { return ((a % n) + n) % n; }

}  // namespace ds4::graph
