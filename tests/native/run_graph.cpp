#include "run_graph.h"

#include <stdexcept>

#include "backend/device.h"
#include "ggml-alloc.h"
#include "ggml-backend.h"

namespace test {
namespace {

/// Runs with two threads, so that ops that divide their rows are tested in that, too.
ggml_backend_t cpu() {
    static ggml_backend_ptr backend = [] {
        ggml_backend_ptr made(ggml_backend_dev_init(ds4::backend::cpu_device(), nullptr));
        ds4::backend::set_threads(made.get(), 2);
        return made;
    }();
    return backend.get();
}

ggml_tensor* shaped(ggml_context* ctx, ggml_type type, Extent shape, size_t count) {
    ggml_tensor* t = ggml_new_tensor(ctx, type, static_cast<int>(shape.size()), shape.begin());
    if (static_cast<size_t>(ggml_nelements(t)) != count) {
        throw std::logic_error("a tensor of " + std::to_string(ggml_nelements(t)) + " elements was given " +
                               std::to_string(count) + " values");
    }
    return t;
}

void set(ggml_tensor* t, const std::vector<float>& values) {
    if (t->type == GGML_TYPE_F32) return ggml_backend_tensor_set(t, values.data(), 0, ggml_nbytes(t));
    std::vector<ggml_fp16_t> half(values.size());
    ggml_fp32_to_fp16_row(values.data(), half.data(), static_cast<int64_t>(half.size()));
    ggml_backend_tensor_set(t, half.data(), 0, ggml_nbytes(t));
}

void set_ints(ggml_tensor* t, const std::vector<int32_t>& values) {
    ggml_backend_tensor_set(t, values.data(), 0, ggml_nbytes(t));
}

ggml_context_ptr described(size_t bytes) { return ggml_context_ptr(ggml_init({bytes, nullptr, true})); }

}  // namespace

Graph::Graph(size_t nodes)
    : b{}, ctx_(described(2 * nodes * ggml_tensor_overhead() + ggml_graph_overhead_custom(nodes, false))) {
    b = {ctx_.get(), ggml_new_graph_custom(ctx_.get(), nodes, false)};
}

ggml_tensor* Graph::floats(const std::vector<float>& values, Extent shape, ggml_type type) {
    ggml_tensor* t = shaped(b.ctx, type, shape, values.size());
    ggml_set_input(t);
    fills_.push_back([=] {
        if (t->buffer) set(t, values);
    });
    return t;
}

ggml_tensor* Graph::ints(const std::vector<int32_t>& values, Extent shape) {
    ggml_tensor* t = shaped(b.ctx, GGML_TYPE_I32, shape, values.size());
    ggml_set_input(t);
    fills_.push_back([=] {
        if (t->buffer) set_ints(t, values);
    });
    return t;
}

void Graph::expand(std::initializer_list<ggml_tensor*> outputs) {
    for (ggml_tensor* t : outputs) {
        ggml_set_output(t);
        b.expanded(t);
    }
}

void Graph::compute(std::initializer_list<ggml_tensor*> outputs, const std::function<void()>& fill) {
    expand(outputs);
    allocator_.reset(ggml_gallocr_new(cpu_buffers()));
    if (!ggml_gallocr_alloc_graph(allocator_.get(), b.graph)) throw std::runtime_error("the graph got no memory");
    for (const auto& f : fills_) f();
    if (fill) fill();
    if (ggml_backend_graph_compute(cpu(), b.graph) != GGML_STATUS_SUCCESS) throw std::runtime_error("compute failed");
}

void Graph::compute_between(std::initializer_list<ggml_tensor*> outputs, ggml_backend_sched_eval_callback observe,
                            void* data) {
    expand(outputs);
    ggml_backend_t backend = cpu();
    scheduler_.reset(ggml_backend_sched_new(&backend, nullptr, 1, ggml_graph_size(b.graph), false, true));
    if (!ggml_backend_sched_alloc_graph(scheduler_.get(), b.graph)) throw std::runtime_error("the graph got no memory");
    for (const auto& f : fills_) f();
    ggml_backend_sched_set_eval_callback(scheduler_.get(), observe, data);
    if (ggml_backend_sched_graph_compute(scheduler_.get(), b.graph) != GGML_STATUS_SUCCESS)
        throw std::runtime_error("compute failed");
}

std::vector<float> Graph::read(const ggml_tensor* t) const { return contents(t); }

std::vector<int32_t> Graph::read_ints(const ggml_tensor* t) const { return values<int32_t>(t); }

std::vector<float> Graph::run(ggml_tensor* output) {
    compute({output});
    return read(output);
}

Store::Store() : ctx_(described(64 * ggml_tensor_overhead())) {}

ggml_tensor* Store::allocated(ggml_type type, Extent shape, size_t count) {
    ggml_tensor* t = shaped(ctx_.get(), type, shape, count);
    buffers_.emplace_back(ggml_backend_alloc_ctx_tensors_from_buft(ctx_.get(), cpu_buffers()));
    return t;
}

ggml_tensor* Store::add(const std::vector<float>& values, Extent shape, ggml_type type) {
    ggml_tensor* t = allocated(type, shape, values.size());
    std::vector<std::byte> data(ggml_nbytes(t));
    ggml_quantize_chunk(type, values.data(), data.data(), 0, ggml_nrows(t), t->ne[0], nullptr);
    ggml_backend_tensor_set(t, data.data(), 0, data.size());
    return t;
}

ggml_tensor* Store::add_ints(const std::vector<int32_t>& values, Extent shape) {
    ggml_tensor* t = allocated(GGML_TYPE_I32, shape, values.size());
    set_ints(t, values);
    return t;
}

std::vector<float> contents(const ggml_tensor* t) {
    if (!ggml_is_contiguous(t)) throw std::logic_error("only a contiguous tensor can be read");
    std::vector<float> values(ggml_nelements(t));
    if (t->type == GGML_TYPE_F32) {
        ggml_backend_tensor_get(t, values.data(), 0, ggml_nbytes(t));
        return values;
    }
    std::vector<ggml_fp16_t> half(values.size());
    ggml_backend_tensor_get(t, half.data(), 0, ggml_nbytes(t));
    ggml_fp16_to_fp32_row(half.data(), values.data(), static_cast<int64_t>(half.size()));
    return values;
}

std::vector<float> noise(size_t count, uint32_t seed, float spread) {
    // The sum of twelve uniform numbers: the standard's normal distribution differs between libraries.
    std::mt19937 bits(seed);
    std::vector<float> values(count);
    for (float& v : values) {
        double sum = -6;
        for (int i = 0; i < 12; i++) sum += bits() * 0x1p-32;
        v = static_cast<float>(sum) * spread;
    }
    return values;
}

float rounded(float x) { return ggml_fp16_to_fp32(ggml_fp32_to_fp16(x)); }

ds4::model::Hyperparameters small_target() {
    ds4::model::Hyperparameters hp{};
    hp.layers = 2;
    hp.ratios = {ds4::model::kCsaRatio, ds4::model::kHcaRatio};
    hp.hidden = 12;
    hp.head_size = 16;
    hp.rope_size = 8;
    hp.window = 32;
    hp.rope_base = 1e4f;
    hp.compress_rope_base = 1.6e5f;
    hp.yarn = true;
    hp.yarn_factor = 16;
    hp.yarn_original_context = 65536;
    hp.index_heads = 4;
    hp.index_size = 12;
    hp.index_top_k = 5;
    hp.experts = 6;
    hp.streams = 4;
    hp.sinkhorn_iterations = 20;
    hp.hc_epsilon = hp.norm_epsilon = 1e-6f;
    return hp;
}

ggml_backend_buffer_type_t cpu_buffers() { return ggml_backend_cpu_buffer_type(); }

}  // namespace test
