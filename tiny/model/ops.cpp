// The hyper-connections' small operations, forwards and backwards, in float32.
//
// As compositions of PyTorch's operations they would take half of a training step: each reads and writes all four
// residual streams. One thread: the trainer runs one process a core.

#include <torch/extension.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace {

constexpr int streams = 4;
constexpr int cells = streams * streams;
constexpr int lanes = 16;  // matrices that are normalised side by side, one a vector lane

using Lane = float[lanes];

struct Line {
    int cell[streams];
};

// Half-step k normalises columns where k is even and rows where it is odd (after the softmax over rows).
Line line(int64_t half_step, int index) {
    Line out;
    for (int i = 0; i < streams; i++) {
        out.cell[i] = half_step % 2 == 0 ? i * streams + index : index * streams + i;
    }
    return out;
}

void sum_line(const Lane* a, const Line& at, float epsilon, Lane& sum) {
    for (int l = 0; l < lanes; l++) {
        sum[l] = epsilon + a[at.cell[0]][l] + a[at.cell[1]][l] + a[at.cell[2]][l] + a[at.cell[3]][l];
    }
}

// All states of the iteration, [2 * iterations][cells][lanes]; the first is softmax + epsilon.
void iterate(const Lane* logits, Lane* states, int64_t iterations, float epsilon) {
    for (int row = 0; row < streams; row++) {
        const Line at = line(1, row);
        for (int l = 0; l < lanes; l++) {
            float top = -INFINITY, sum = 0;
            for (int cell : at.cell) {
                top = std::max(top, logits[cell][l]);
            }
            for (int cell : at.cell) {
                sum += states[cell][l] = std::exp(logits[cell][l] - top);
            }
            for (int cell : at.cell) {
                states[cell][l] = states[cell][l] / sum + epsilon;
            }
        }
    }
    for (int64_t k = 0; k + 1 < 2 * iterations; k++) {
        const Lane* a = states + k * cells;
        Lane* next = states + (k + 1) * cells;
        for (int index = 0; index < streams; index++) {
            const Line at = line(k, index);
            Lane sum;
            sum_line(a, at, epsilon, sum);
            for (int cell : at.cell) {
                for (int l = 0; l < lanes; l++) {
                    next[cell][l] = a[cell][l] / sum[l];
                }
            }
        }
    }
}

// `gradient` of the last state becomes that of the logits.
void iterate_backward(const Lane* states, Lane* gradient, int64_t iterations, float epsilon) {
    for (int64_t k = 2 * iterations - 2; k >= 0; k--) {
        const Lane* a = states + k * cells;
        const Lane* next = states + (k + 1) * cells;
        for (int index = 0; index < streams; index++) {
            const Line at = line(k, index);
            Lane sum, dot = {};
            sum_line(a, at, epsilon, sum);
            for (int cell : at.cell) {
                for (int l = 0; l < lanes; l++) {
                    dot[l] += gradient[cell][l] * next[cell][l];
                }
            }
            for (int cell : at.cell) {
                for (int l = 0; l < lanes; l++) {
                    gradient[cell][l] = (gradient[cell][l] - dot[l]) / sum[l];
                }
            }
        }
    }
    for (int row = 0; row < streams; row++) {  // the softmax
        const Line at = line(1, row);
        for (int l = 0; l < lanes; l++) {
            float dot = 0;
            for (int cell : at.cell) {
                dot += gradient[cell][l] * (states[cell][l] - epsilon);
            }
            for (int cell : at.cell) {
                gradient[cell][l] = (gradient[cell][l] - dot) * (states[cell][l] - epsilon);
            }
        }
    }
}

int64_t gather(const float* from, Lane* to, int64_t first, int64_t count) {
    const int64_t here = std::min<int64_t>(lanes, count - first);
    for (int l = 0; l < lanes; l++) {
        for (int i = 0; i < cells; i++) {
            to[i][l] = l < here ? from[(first + l) * cells + i] : 0.0F;
        }
    }
    return here;
}

void scatter(const Lane* from, float* to, int64_t first, int64_t here) {
    for (int l = 0; l < here; l++) {
        for (int i = 0; i < cells; i++) {
            to[(first + l) * cells + i] = from[i][l];
        }
    }
}

const float* data(const torch::Tensor& x) {
    TORCH_CHECK(x.is_contiguous() && x.scalar_type() == torch::kFloat, "contiguous float32 wanted");
    return x.data_ptr<float>();
}

float* out(torch::Tensor& x) { return x.data_ptr<float>(); }

}  // namespace

// logits [n, 16], row-major [source][destination] -> doubly stochastic [n, 16]
torch::Tensor sinkhorn(const torch::Tensor& logits, int64_t iterations, double epsilon) {
    auto result = torch::empty_like(logits);
    const int64_t count = logits.size(0);
    std::vector<float> buffer(2 * iterations * cells * lanes);
    auto* states = reinterpret_cast<Lane*>(buffer.data());
    Lane block[cells];
    for (int64_t first = 0; first < count; first += lanes) {
        const int64_t here = gather(data(logits), block, first, count);
        iterate(block, states, iterations, static_cast<float>(epsilon));
        scatter(states + (2 * iterations - 1) * cells, out(result), first, here);
    }
    return result;
}

torch::Tensor sinkhorn_backward(const torch::Tensor& gradient, const torch::Tensor& logits, int64_t iterations,
                                double epsilon) {
    auto result = torch::empty_like(logits);
    const int64_t count = logits.size(0);
    std::vector<float> buffer(2 * iterations * cells * lanes);
    auto* states = reinterpret_cast<Lane*>(buffer.data());
    Lane block[cells], slope[cells];
    for (int64_t first = 0; first < count; first += lanes) {
        const int64_t here = gather(data(logits), block, first, count);
        gather(data(gradient), slope, first, count);
        iterate(block, states, iterations, static_cast<float>(epsilon));
        iterate_backward(states, slope, iterations, static_cast<float>(epsilon));
        scatter(slope, out(result), first, here);
    }
    return result;
}

// x [n, 4, d], pre [n, 4] -> sum over streams of pre * x, [n, d]
torch::Tensor mix(const torch::Tensor& x, const torch::Tensor& pre) {
    const int64_t count = x.size(0), d = x.size(2);
    auto result = torch::empty({count, d}, x.options());
    for (int64_t n = 0; n < count; n++) {
        const float* from = data(x) + n * streams * d;
        const float* p = data(pre) + n * streams;
        float* to = out(result) + n * d;
        for (int64_t i = 0; i < d; i++) {
            to[i] = p[0] * from[i] + p[1] * from[d + i] + p[2] * from[2 * d + i] + p[3] * from[3 * d + i];
        }
    }
    return result;
}

std::vector<torch::Tensor> mix_backward(const torch::Tensor& gradient, const torch::Tensor& x,
                                        const torch::Tensor& pre) {
    auto dx = torch::empty_like(x), dpre = torch::empty_like(pre);
    const int64_t count = x.size(0), d = x.size(2);
    for (int64_t n = 0; n < count; n++) {
        const float* g = data(gradient) + n * d;
        for (int s = 0; s < streams; s++) {
            const float* from = data(x) + (n * streams + s) * d;
            float* to = out(dx) + (n * streams + s) * d;
            const float p = data(pre)[n * streams + s];
            float dot = 0;
            for (int64_t i = 0; i < d; i++) {
                to[i] = p * g[i];
                dot += g[i] * from[i];
            }
            out(dpre)[n * streams + s] = dot;
        }
    }
    return {dx, dpre};
}

// x [n, 4, d], y [n, d], post [n, 4], comb [n, 16] -> post[to] * y + sum over sources of comb[from][to] * x[from]
torch::Tensor post(const torch::Tensor& x, const torch::Tensor& y, const torch::Tensor& post,
                   const torch::Tensor& comb) {
    auto result = torch::empty_like(x);
    const int64_t count = x.size(0), d = x.size(2);
    for (int64_t n = 0; n < count; n++) {
        const float* from = data(x) + n * streams * d;
        const float* add = data(y) + n * d;
        const float* c = data(comb) + n * cells;
        for (int s = 0; s < streams; s++) {
            const float p = data(post)[n * streams + s];
            float* to = out(result) + (n * streams + s) * d;
            for (int64_t i = 0; i < d; i++) {
                to[i] = p * add[i] + c[s] * from[i] + c[4 + s] * from[d + i] + c[8 + s] * from[2 * d + i] +
                        c[12 + s] * from[3 * d + i];
            }
        }
    }
    return result;
}

std::vector<torch::Tensor> post_backward(const torch::Tensor& gradient, const torch::Tensor& x, const torch::Tensor& y,
                                         const torch::Tensor& post, const torch::Tensor& comb) {
    auto dx = torch::empty_like(x), dy = torch::empty_like(y), dpost = torch::empty_like(post);
    auto dcomb = torch::empty_like(comb);
    const int64_t count = x.size(0), d = x.size(2);
    for (int64_t n = 0; n < count; n++) {
        const float* g0 = data(gradient) + n * streams * d;
        const float *g1 = g0 + d, *g2 = g1 + d, *g3 = g2 + d;
        const float* p = data(post) + n * streams;
        const float* add = data(y) + n * d;
        float dot[streams] = {};
        float* to = out(dy) + n * d;
        for (int64_t i = 0; i < d; i++) {
            to[i] = p[0] * g0[i] + p[1] * g1[i] + p[2] * g2[i] + p[3] * g3[i];
            dot[0] += g0[i] * add[i];
            dot[1] += g1[i] * add[i];
            dot[2] += g2[i] * add[i];
            dot[3] += g3[i] * add[i];
        }
        std::copy(dot, dot + streams, out(dpost) + n * streams);
        for (int s = 0; s < streams; s++) {
            const float* c = data(comb) + n * cells + s * streams;
            const float* from = data(x) + (n * streams + s) * d;
            float* into = out(dx) + (n * streams + s) * d;
            float a0 = 0, a1 = 0, a2 = 0, a3 = 0;
            for (int64_t i = 0; i < d; i++) {
                into[i] = c[0] * g0[i] + c[1] * g1[i] + c[2] * g2[i] + c[3] * g3[i];
                a0 += g0[i] * from[i];
                a1 += g1[i] * from[i];
                a2 += g2[i] * from[i];
                a3 += g3[i] * from[i];
            }
            float* dc = out(dcomb) + n * cells + s * streams;
            dc[0] = a0, dc[1] = a1, dc[2] = a2, dc[3] = a3;
        }
    }
    return {dx, dy, dpost, dcomb};
}

// Rows of x [n, d] over their root mean square; also 1 / rms [n].
std::vector<torch::Tensor> norm(const torch::Tensor& x, double epsilon) {
    auto result = torch::empty_like(x);
    const int64_t d = x.size(-1), count = x.numel() / d;
    auto inverse = torch::empty({count}, x.options());
    for (int64_t n = 0; n < count; n++) {
        const float* from = data(x) + n * d;
        float* to = out(result) + n * d;
        float sum = 0;
        for (int64_t i = 0; i < d; i++) {
            sum += from[i] * from[i];
        }
        const float r = 1.0F / std::sqrt(sum / static_cast<float>(d) + static_cast<float>(epsilon));
        out(inverse)[n] = r;
        for (int64_t i = 0; i < d; i++) {
            to[i] = from[i] * r;
        }
    }
    return {result, inverse};
}

// From the normalised rows y and 1 / rms: dx = (g - y * mean(g * y)) / rms, but for epsilon's share.
torch::Tensor norm_backward(const torch::Tensor& gradient, const torch::Tensor& y, const torch::Tensor& inverse) {
    auto result = torch::empty_like(y);
    const int64_t d = y.size(-1), count = y.numel() / d;
    for (int64_t n = 0; n < count; n++) {
        const float* g = data(gradient) + n * d;
        const float* at = data(y) + n * d;
        float* to = out(result) + n * d;
        const float r = data(inverse)[n];
        float dot = 0;
        for (int64_t i = 0; i < d; i++) {
            dot += g[i] * at[i];
        }
        dot /= static_cast<float>(d);
        for (int64_t i = 0; i < d; i++) {
            to[i] = (g[i] - at[i] * dot) * r;
        }
    }
    return result;
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
    m.def("sinkhorn", &sinkhorn);
    m.def("sinkhorn_backward", &sinkhorn_backward);
    m.def("mix", &mix);
    m.def("mix_backward", &mix_backward);
    m.def("post", &post);
    m.def("post_backward", &post_backward);
    m.def("norm", &norm);
    m.def("norm_backward", &norm_backward);
}
