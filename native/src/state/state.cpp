#include "state/state.h"

#include <algorithm>
#include <bit>

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

std::vector<LayerState> describe_state(ggml_context* ctx, const model::Hyperparameters& hp, int64_t context,
                                       ggml_type kv_type) {
    std::vector<LayerState> layers(hp.layers);
    for (int64_t i = 0; i < hp.layers; i++) {
        const int ratio = hp.ratios[i];
        layers[i].raw = ggml_new_tensor_2d(ctx, kv_type, hp.head_size, raw_capacity(hp));
        if (ratio) layers[i].compressor = describe_compressor(ctx, ratio, hp.head_size, context, kv_type);
        if (ratio == 4) layers[i].indexer = describe_compressor(ctx, 4, hp.index_size, context, kv_type);
    }
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

State::State(const model::Hyperparameters& hp, int64_t context, ggml_type kv_type, ggml_backend_buffer_type_t device,
             const drafter::Hyperparameters* drafter)
    : kv_type_(kv_type), ctx_(describing_context(hp, drafter)) {
    layers_ = describe_state(ctx_.get(), hp, context, kv_type);
    if (drafter) drafter_ = describe_drafter_state(ctx_.get(), *drafter, kv_type);
    buffer_.reset(ggml_backend_alloc_ctx_tensors_from_buft(ctx_.get(), device));
    if (!buffer_) {
        throw BackendError("no room on " + std::string(ggml_backend_buft_name(device)) + " for a session of " +
                           std::to_string(context) + " positions (" +
                           std::to_string(bytes(hp, context, kv_type, device, drafter) >> 20) +
                           " MiB): use a smaller context or F16 KV");
    }
    clear();
}

size_t State::bytes(const model::Hyperparameters& hp, int64_t context, ggml_type kv_type,
                    ggml_backend_buffer_type_t device, const drafter::Hyperparameters* drafter) {
    ggml_context_ptr ctx = describing_context(hp, drafter);
    describe_state(ctx.get(), hp, context, kv_type);
    if (drafter) describe_drafter_state(ctx.get(), *drafter, kv_type);
    const size_t align = ggml_backend_buft_get_alignment(device);
    size_t total = 0;
    for (ggml_tensor* t = ggml_get_first_tensor(ctx.get()); t; t = ggml_get_next_tensor(ctx.get(), t)) {
        total += GGML_PAD(ggml_backend_buft_get_alloc_size(device, t), align);
    }
    return total;
}

void State::clear() { ggml_backend_buffer_clear(buffer_.get(), 0); }

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
        if (l.compressor.rows) all.emplace_back(l.compressor.rows, l.indexer.rows ? 4 : 128);
        if (l.indexer.rows) all.emplace_back(l.indexer.rows, 4);
    }
    return all;
}

}  // namespace ds4::state
