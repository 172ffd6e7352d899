#include "ops/proposal.h"

#include <algorithm>

namespace ds4::ops {
namespace {

template <typename T>
std::span<T> row_of(const ggml_tensor* t) {
    return {static_cast<T*>(t->data), static_cast<size_t>(ggml_nelements(t))};
}

/// Runs `body` on the first thread, keeping what it throws: ggml's C code cannot be thrown through.
template <typename F>
void once(int thread, void* data, F body) {
    auto* draw = static_cast<ProposalDraw*>(data);
    if (thread != 0 || draw->error) return;
    try {
        body(*draw);
    } catch (...) {
        draw->error = std::current_exception();
    }
}

void run_distribution(ggml_tensor* dst, int thread, int, void* data) {
    once(thread, data, [&](ProposalDraw& draw) {
        const auto ids = dst->src[1] ? row_of<const int32_t>(dst->src[1]) : std::span<const int32_t>();
        std::ranges::copy(draw.sampler->distribution(row_of<const float>(dst->src[0]), draw.history, ids),
                          row_of<float>(dst).begin());
    });
}

void run_token(ggml_tensor* dst, int thread, int, void* data) {
    int32_t& token = row_of<int32_t>(dst)[0];
    if (thread == 0) token = 0;  // after an error the rest of the graph still gathers by it
    once(thread, data, [&](ProposalDraw& draw) {
        const int32_t index = ds4::draw(row_of<const float>(dst->src[0]), draw.uniforms.at(draw.drawn++));
        token = dst->src[1] ? row_of<const int32_t>(dst->src[1])[index] : index;
        draw.history.push_back(token);
    });
}

ggml_tensor* custom(const Build& b, ggml_type type, int64_t size, ggml_tensor* row, ggml_tensor* ids,
                    ggml_custom_op_t run, ProposalDraw* draw) {
    ggml_tensor* sources[] = {row, ids};
    return ggml_custom_4d(b.ctx, type, size, 1, 1, 1, sources, ids ? 2 : 1, run, 1, draw);
}

}  // namespace

ggml_tensor* proposal_distribution(const Build& b, ggml_tensor* z, ggml_tensor* ids, ProposalDraw* draw) {
    return custom(b, GGML_TYPE_F32, ggml_nelements(z), z, ids, run_distribution, draw);
}

ggml_tensor* proposal_token(const Build& b, ggml_tensor* q, ggml_tensor* ids, ProposalDraw* draw) {
    return custom(b, GGML_TYPE_I32, 1, q, ids, run_token, draw);
}

}  // namespace ds4::ops
