#include <algorithm>
#include <deque>

#include "backend/device.h"
#include "backend/rpc_connection.h"
#include "drafter/description.h"
#include "ds4/memory.h"
#include "graph/draft.h"
#include "machine/memory.h"
#include "session/dummy_buffers.h"
#include "session/graph_cache.h"
#include "weights/loading.h"

namespace ds4 {
namespace {

/// A pair whose tensors have no data.
struct Described {
    model::Hyperparameters hp;
    ggml_context_ptr ctx;
    weights::Weights weights;
    std::shared_ptr<const Drafter> drafter;  // null without one
    std::deque<kernels::PackedTensor> packed;

    Described(const gguf::File& target, const gguf::File* drafter_file) : hp(model::read_hyperparameters(target)) {
        ctx.reset(ggml_init({weights::context_size(hp), nullptr, true}));
        weights = weights::describe_weights(ctx.get(), target, hp);
        if (drafter_file) drafter = Drafter::describe(*drafter_file, hp);
    }

    const drafter::Hyperparameters* drafter_numbers() const { return drafter ? &drafter->hyperparameters() : nullptr; }

    std::vector<weights::Packable> drafter_packable() const {
        return weights.head_uses_own_kernels() ? drafter::packable(drafter->weights(), hp)
                                               : std::vector<weights::Packable>();
    }

    /// Marks what would be packed, which decides who computes it.
    void mark_packed() {
        std::vector<weights::Packable> all = weights::packable(weights, hp);
        if (drafter) std::ranges::copy(drafter_packable(), std::back_inserter(all));
        for (const weights::Packable& each : all) {
            if (const auto shape = weights::packed_shape(each)) each.tensor->extra = &packed.emplace_back(*shape);
        }
    }
};

/// Bytes that the graphs of a session run in, once it keeps as many as it may: each has memory of its own.
class Scratch {
   public:
    Scratch(const gguf::File& target, const gguf::File* drafter, int64_t context, ggml_type kv_type)
        : target_(target), drafter_(drafter), context_(context), kv_type_(kv_type) {
        backends_.emplace_back(ggml_backend_dev_init(backend::cpu_device(), nullptr));
    }

    /// Returns the bytes on one device that computes everything, with the CPU's own kernels or with ggml's ops alone.
    size_t of(bool own_kernels) const {
        Described pair(target_, drafter_);
        pair.weights.device_map = weights::all_on_cpu(pair.hp.layers, own_kernels);
        pair.mark_packed();
        ggml_context_ptr ctx(ggml_init({state::context_size(pair.hp, pair.drafter_numbers()), nullptr, true}));
        const auto layers = state::describe_state(ctx.get(), pair.hp, context_, kv_type_);
        state::DrafterState drafter_state;
        if (pair.drafter) drafter_state = state::describe_drafter_state(ctx.get(), *pair.drafter_numbers(), kv_type_);
        std::vector<ggml_backend_buffer_ptr> dummies;
        dummies.push_back(session::dummy_buffers(pair.ctx.get()));
        dummies.push_back(session::dummy_buffers(ctx.get()));
        if (pair.drafter) dummies.push_back(session::dummy_buffers(pair.drafter->context()));
        const auto forward_of = [&](int64_t rows) {
            return forward(pair, layers, drafter_state, std::min(rows, context_));
        };
        const int64_t usual = pair.drafter ? pair.drafter_numbers()->block + 1 : 1;
        const size_t forwards = forward_of(graph::chunk_rows(context_)) + forward_of(state::kMaxRows) +
                                (session::kGraphsKept - 2) * forward_of(usual);
        if (!pair.drafter) return forwards;
        // A draft after a prompt, and one for each number of rows that a cycle commits.
        const size_t after_prompt = draft(pair, drafter_state, pair.drafter_numbers()->stages.window);
        return forwards + after_prompt + static_cast<size_t>(usual) * draft(pair, drafter_state, usual);
    }

   private:
    template <typename Shape, typename Build>
    size_t measure(const Shape& shape, size_t nodes, Build build) const {
        const auto plan = session::build_plan(backends_, shape, nodes, build);
        size_t size = 0;
        ggml_backend_sched_reserve_size(plan->scheduler.get(), plan->built.graph, &size);
        return size;
    }

    /// The last rows of the context: a chunk of a prompt, or a verify.
    size_t forward(const Described& pair, const std::vector<state::LayerState>& layers,
                   const state::DrafterState& drafter, int64_t rows) const {
        graph::Taps taps;
        if (pair.drafter) taps = {pair.drafter_numbers()->taps, drafter.features};
        const auto logits = rows > state::kMaxRows ? graph::Logits::last : graph::Logits::all;
        const int64_t features = pair.drafter ? std::min(rows, state::context_capacity(*pair.drafter_numbers())) : 0;
        const graph::Shape shape = graph::shape_of(pair.hp, context_ - rows, rows, logits, features);
        return measure(shape, graph::node_bound(pair.hp, shape), [&](ggml_context* ctx) {
            return graph::build_target(ctx, pair.hp, pair.weights, layers, taps, shape);
        });
    }

    /// A draft over the whole vocabulary after `committed` rows.
    size_t draft(const Described& pair, const state::DrafterState& state, int64_t committed) const {
        const graph::DraftShape shape{committed, 0, true, true};
        ops::ProposalDraw draw;
        return measure(shape, graph::node_bound(*pair.drafter_numbers()), [&](ggml_context* ctx) {
            return graph::build_draft(ctx, {pair.weights, *pair.drafter, state, &draw, false}, shape);
        });
    }

    const gguf::File& target_;
    const gguf::File* drafter_;
    int64_t context_;
    ggml_type kv_type_;
    std::vector<ggml_backend_ptr> backends_;
};

/// Returns the bytes of a tensor: on the CPU those in the file, on another device those of its buffer type.
size_t bytes_on(ggml_backend_dev_t device, const ggml_tensor* t) {
    if (device == backend::cpu_device()) return ggml_nbytes(t);
    return ggml_backend_buft_get_alloc_size(ggml_backend_dev_buffer_type(device), t);
}

/// Returns the bytes of the copies that packing makes of tensors that are not packed in the file.
size_t packed_bytes(const gguf::File& file, const std::vector<weights::Packable>& packable) {
    size_t total = 0;
    for (const weights::Packable& each : packable) {
        const auto shape = weights::packed_shape(each);
        if (shape && !file.find_tensor(each.tensor->name)->packed) total += shape->bytes * shape->count;
    }
    return total;
}

bool is_routed(const weights::Weights& weights, const ggml_tensor* t) {
    return std::ranges::any_of(weights.layers, [&](const weights::Layer& layer) {
        return t == layer.moe.gate || t == layer.moe.up || t == layer.moe.down;
    });
}

/// A device that does not say what it has shares the machine's memory.
size_t available_on(ggml_backend_dev_t device) {
    size_t free = 0, total = 0;
    if (device != backend::cpu_device()) ggml_backend_dev_memory(device, &free, &total);
    return total ? free : machine::available_memory();
}

void add_weights(std::vector<DeviceMemory>& out, const Described& pair) {
    for (ggml_tensor* t = ggml_get_first_tensor(pair.ctx.get()); t; t = ggml_get_next_tensor(pair.ctx.get(), t)) {
        const int device = weights::device_index_of(pair.weights, t);
        const size_t bytes = bytes_on(pair.weights.device_map.devices[device], t);
        (is_routed(pair.weights, t) ? out[device].experts : out[device].weights) += bytes;
    }
}

void add_state(std::vector<DeviceMemory>& out, const Described& pair, int64_t context, ggml_type kv_type) {
    const weights::DeviceMap& device_map = pair.weights.device_map;
    const auto add = [&](int device, ggml_context* ctx) {
        out[device].state += state::bytes(ctx, ggml_backend_dev_buffer_type(device_map.devices[device]));
    };
    for (int64_t i = 0; i < pair.hp.layers; i++) {
        const ggml_context_ptr ctx(ggml_init({state::context_size(pair.hp), nullptr, true}));
        state::describe_layer(ctx.get(), pair.hp, i, context, kv_type);
        add(device_map.layers[i], ctx.get());
    }
    if (!pair.drafter) return;
    const ggml_context_ptr ctx(ggml_init({state::context_size(pair.hp, pair.drafter_numbers()), nullptr, true}));
    state::describe_drafter_state(ctx.get(), *pair.drafter_numbers(), kv_type);
    add(device_map.head, ctx.get());
}

void add_drafter(DeviceMemory& out, ggml_backend_dev_t device, const Described& pair, const gguf::File& file) {
    ggml_context* ctx = pair.drafter->context();
    for (ggml_tensor* t = ggml_get_first_tensor(ctx); t; t = ggml_get_next_tensor(ctx, t)) {
        out.drafter += bytes_on(device, t);
    }
    out.packed += packed_bytes(file, pair.drafter_packable());
}

}  // namespace

std::vector<DeviceMemory> memory_by_device(const gguf::File& target, const gguf::File* drafter,
                                           const ModelOptions& options, int64_t context, ggml_type kv_type) {
    Described pair(target, drafter);
    weights::assign_devices(pair.weights, {options.device, options.split, options.cpu_moe},
                            options.repack && weights::own_kernels());
    const weights::DeviceMap& device_map = pair.weights.device_map;
    const backend::ConnectionLock lock(backend::endpoints_of(device_map.devices));
    std::vector<DeviceMemory> out(device_map.devices.size());
    add_weights(out, pair);
    add_state(out, pair, context, kv_type);
    const int host = device_map.cpu();
    out[host].packed = packed_bytes(target, weights::packable(pair.weights, pair.hp));
    if (drafter) add_drafter(out[device_map.head], device_map.devices[device_map.head], pair, *drafter);
    const Scratch scratch(target, drafter, context, kv_type);
    for (int i = 0; i <= host; i++) {
        out[i].device = backend::name_of(device_map.devices[i]);
        out[i].host = i == host;
        const bool computes = out[i].state + out[i].experts > 0;
        if (computes) out[i].scratch = scratch.of(device_map.uses_own_kernels(i));
        out[i].available = available_on(device_map.devices[i]);
    }
    return out;
}

}  // namespace ds4
