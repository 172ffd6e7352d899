#pragma once
// Runs small graphs on the CPU device: the reference path of every op.

#include <functional>
#include <initializer_list>
#include <random>
#include <vector>

#include "ggml-cpp.h"
#include "model/hyperparameters.h"
#include "ops/ops.h"

namespace test {

/// A shape in ggml's order, of one to four numbers.
using Extent = std::initializer_list<int64_t>;

/// One graph: create inputs, build ops on them with `b`, compute once, read.
class Graph {
   public:
    explicit Graph(size_t nodes = 512);

    ds4::ops::Build b;

    /// Inputs; the values are set when the graph is computed. Type F32 or F16. Throws std::logic_error when their
    /// number is not the shape's.
    ggml_tensor* floats(const std::vector<float>& values, Extent shape, ggml_type type = GGML_TYPE_F32);
    ggml_tensor* ints(const std::vector<int32_t>& values, Extent shape);

    /// Computes the graph with `outputs` added to what it holds already. `fill` runs once memory is there.
    void compute(std::initializer_list<ggml_tensor*> outputs, const std::function<void()>& fill = {});
    /// Computes the graph by a scheduler, which calls `observe` between the nodes.
    void compute_between(std::initializer_list<ggml_tensor*> outputs, ggml_backend_sched_eval_callback observe,
                         void* data);
    /// An output (contiguous F32) after compute().
    std::vector<float> read(const ggml_tensor* t) const;
    std::vector<int32_t> read_ints(const ggml_tensor* t) const;
    /// compute() and read() of a single output.
    std::vector<float> run(ggml_tensor* output);

   private:
    void expand(std::initializer_list<ggml_tensor*> outputs);

    ggml_context_ptr ctx_;
    ggml_gallocr_ptr allocator_;
    ggml_backend_sched_ptr scheduler_;
    std::vector<std::function<void()>> fills_;
};

/// Tensors that outlive a graph: weights and state.
class Store {
   public:
    Store();
    /// Creates a tensor of any type that ggml quantises to.
    ggml_tensor* add(const std::vector<float>& values, Extent shape, ggml_type type = GGML_TYPE_F32);
    ggml_tensor* add_ints(const std::vector<int32_t>& values, Extent shape);

   private:
    ggml_tensor* allocated(ggml_type type, Extent shape, size_t count);

    ggml_context_ptr ctx_;
    std::vector<ggml_backend_buffer_ptr> buffers_;
};

/// The elements of a contiguous tensor as they are stored.
template <typename T>
std::vector<T> values(const ggml_tensor* t) {
    std::vector<T> v(ggml_nelements(t));
    ggml_backend_tensor_get(t, v.data(), 0, ggml_nbytes(t));
    return v;
}

/// The contents of a contiguous F32 or F16 tensor.
std::vector<float> contents(const ggml_tensor* t);

/// `count` normal numbers of the given spread, the same on every machine.
std::vector<float> noise(size_t count, uint32_t seed, float spread = 1);

/// The value after rounding to F16.
float rounded(float x);

/// A small target with both kinds of compressed layers; sizes are those the tests' loops expect.
ds4::model::Hyperparameters small_target();

ggml_backend_buffer_type_t cpu_buffers();

}  // namespace test
