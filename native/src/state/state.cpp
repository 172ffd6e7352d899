#include "state/state.h"

#include <algorithm>
#include <bit>
#include <map>

#include "ggml-alloc.h"

namespace ds4::state {
namespace {

CompressorState describe_compressor(ggml_context* ctx, int ratio, int64_t size, int64_t context, ggml_type kv_type) {
    const int64_t width = model::Hyperparameters::compress_width(ratio, size);
    CompressorState c;
    c.kv = ggml_new_tensor_2d(ctx, GGML_TYPE_F32, width, carry_capacity(ratio));
    c.score = ggml_new_tensor_2d(ctx, GGML_TYPE_F32, width, carry_capacity(ratio));
    c.rows = ggml_new_tensor_2d(ctx, kv_type, size, std::max<int64_t>(bucket(context / ratio), 1));
    return c;
}

ggml_context_ptr describing_context(const model::Hyperparameters& hp, const drafter::Hyperparameters* drafter) {
    ggml_context_ptr ctx(ggml_init({context_size(hp, drafter), nullptr, true}));
    if (!ctx) throw BackendError("no memory for the description of a session's state");
    return ctx;
}

}  // namespace

size_t context_size(const model::Hyperparameters& hp, const drafter::Hyperparameters* drafter) {
    constexpr size_t kTensorsPerLayer = 7;
    const int64_t rings = drafter ? 1 + drafter->stages.layers : 0;
    return (hp.layers * kTensorsPerLayer + rings) * ggml_tensor_overhead();
}

int64_t bucket(int64_t rows) {
    constexpr int64_t kSmallest = 64;
    if (rows <= 0) return 0;
    const int64_t step = std::max<int64_t>(kSmallest, std::bit_floor(static_cast<uint64_t>(rows)) / 4);
    return (rows + step - 1) / step * step;
}

LayerState describe_layer(ggml_context* ctx, const model::Hyperparameters& hp, int64_t layer, int64_t context,
                          ggml_type kv_type) {
    const int ratio = hp.ratios[layer];
    LayerState s;
    s.raw = ggml_new_tensor_2d(ctx, kv_type, hp.head_size, raw_capacity(hp));
    if (ratio) s.compressor = describe_compressor(ctx, ratio, hp.head_size, context, kv_type);
    if (ratio == model::kCsaRatio) s.indexer = describe_compressor(ctx, ratio, hp.index_size, context, kv_type);
    return s;
}

std::vector<LayerState> describe_state(ggml_context* ctx, const model::Hyperparameters& hp, int64_t context,
                                       ggml_type kv_type) {
    std::vector<LayerState> layers;
    for (int64_t i = 0; i < hp.layers; i++) layers.push_back(describe_layer(ctx, hp, i, context, kv_type));
    return layers;
}

DrafterState describe_drafter_state(ggml_context* ctx, const drafter::Hyperparameters& hp, ggml_type kv_type) {
    const int64_t rows = context_capacity(hp), taps = static_cast<int64_t>(hp.taps.size());
    DrafterState s{ggml_new_tensor_2d(ctx, GGML_TYPE_F32, taps * hp.stages.hidden, rows), {}};
    for (int64_t i = 0; i < hp.stages.layers; i++) {
        s.context.push_back(ggml_new_tensor_2d(ctx, kv_type, hp.stages.head_size, rows));
    }
    return s;
}

BufferTypes same_buffer_type(ggml_backend_buffer_type_t type, int64_t layers) {
    return {std::vector<ggml_backend_buffer_type_t>(layers, type), type};
}

State::State(const model::Hyperparameters& hp, int64_t context, ggml_type kv_type, const BufferTypes& buffer_types,
             const drafter::Hyperparameters* drafter)
    : kv_type_(kv_type) {
    std::map<ggml_backend_buffer_type_t, ggml_context*> contexts;
    const auto in = [&](ggml_backend_buffer_type_t type) {
        ggml_context*& ctx = contexts[type];
        if (!ctx) ctx = contexts_.emplace_back(describing_context(hp, drafter)).get();
        return ctx;
    };
    for (int64_t i = 0; i < hp.layers; i++) {
        layers_.push_back(describe_layer(in(buffer_types.layers[i]), hp, i, context, kv_type));
    }
    if (drafter) drafter_ = describe_drafter_state(in(buffer_types.drafter), *drafter, kv_type);
    for (const auto& [type, ctx] : contexts) {
        buffers_.emplace_back(ggml_backend_alloc_ctx_tensors_from_buft(ctx, type));
        if (buffers_.back()) continue;
        throw BackendError("no room on " + std::string(ggml_backend_buft_name(type)) + " for a session of " +
                           std::to_string(context) + " positions (" + std::to_string(bytes(ctx, type) >> 20) +
                           " MiB): use a smaller context or F16 KV");
    }
    clear();
}

size_t bytes(ggml_context* ctx, ggml_backend_buffer_type_t type) {
    const size_t align = ggml_backend_buft_get_alignment(type);
    size_t total = 0;
    for (ggml_tensor* t = ggml_get_first_tensor(ctx); t; t = ggml_get_next_tensor(ctx, t)) {
        total += GGML_PAD(ggml_backend_buft_get_alloc_size(type, t), align);
    }
    return total;
}

void State::clear() {
    for (const ggml_backend_buffer_ptr& buffer : buffers_) ggml_backend_buffer_clear(buffer.get(), 0);
}

std::vector<ggml_tensor*> State::rings() const {
    std::vector<ggml_tensor*> all;
    for (const LayerState& l : layers_) {
        for (ggml_tensor* t : {l.raw, l.compressor.kv, l.compressor.score, l.indexer.kv, l.indexer.score}) {
            if (t) all.push_back(t);
        }
    }
    return all;
}

std::vector<ggml_tensor*> State::drafter_rings() const {
    std::vector<ggml_tensor*> all;
    if (drafter_.features) all.push_back(drafter_.features);
    all.insert(all.end(), drafter_.context.begin(), drafter_.context.end());
    return all;
}

std::vector<std::pair<ggml_tensor*, int>> State::compressed() const {
    std::vector<std::pair<ggml_tensor*, int>> all;
    for (const LayerState& l : layers_) {
        if (l.compressor.rows)
            all.emplace_back(l.compressor.rows, l.indexer.rows ? model::kCsaRatio : model::kHcaRatio);
        if (l.indexer.rows) all.emplace_back(l.indexer.rows, 4);
    }
    return all;
}

}  // namespace ds4::state
