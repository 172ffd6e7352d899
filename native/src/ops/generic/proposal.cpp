#include "ops/proposal.h"

#include <algorithm>

namespace ds4::ops {
namespace {

template <typename T>
std::span<T> row_of(const ggml_tensor* t) {
    return {static_cast<T*>(t->data), static_cast<size_t>(ggml_nelements(t))};
}

std::span<const int32_t> ids_of(const ggml_tensor* node) {
    return node->src[1] ? row_of<const int32_t>(node->src[1]) : std::span<const int32_t>();
}

void run_distribution(ggml_tensor* dst, int thread, int, void* data) {
    if (thread != 0) return;
    auto& draw = *static_cast<ProposalDraw*>(data);
    draw.attempt([&] { draw.distribution(row_of<const float>(dst->src[0]), ids_of(dst), row_of<float>(dst)); });
}

void run_token(ggml_tensor* dst, int thread, int, void* data) {
    if (thread != 0) return;
    auto& draw = *static_cast<ProposalDraw*>(data);
    int32_t& token = row_of<int32_t>(dst)[0];
    token = 0;  // after an error the rest of the graph still gathers by it
    draw.attempt([&] { token = draw.token(row_of<const float>(dst->src[0]), ids_of(dst)); });
}

ggml_tensor* custom(const Build& b, ggml_type type, int64_t size, ggml_tensor* row, ggml_tensor* ids,
                    ggml_custom_op_t run, ProposalDraw* draw) {
    ggml_tensor* sources[] = {row, ids};
    return ggml_custom_4d(b.ctx, type, size, 1, 1, 1, sources, ids ? 2 : 1, run, 1, draw);
}

}  // namespace

void ProposalDraw::distribution(std::span<const float> z, std::span<const int32_t> ids, std::span<float> q) {
    std::ranges::copy(sampler->distribution(z, history, ids), q.begin());
}

int32_t ProposalDraw::token(std::span<const float> q, std::span<const int32_t> ids) {
    const int32_t index = draw(q, uniforms.at(drawn++));
    history.push_back(ids.empty() ? index : ids[index]);
    return history.back();
}

ggml_tensor* proposal_distribution(const Build& b, ggml_tensor* z, ggml_tensor* ids, ProposalDraw* draw) {
    return custom(b, GGML_TYPE_F32, ggml_nelements(z), z, ids, run_distribution, draw);
}

ggml_tensor* proposal_token(const Build& b, ggml_tensor* q, ggml_tensor* ids, ProposalDraw* draw) {
    return custom(b, GGML_TYPE_I32, 1, q, ids, run_token, draw);
}

}  // namespace ds4::ops
