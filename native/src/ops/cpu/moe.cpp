#include <cmath>
#include <vector>

#include "cpu/packing.h"
#include "ops/cpu/groups.h"

namespace ds4::ops::cpu {
namespace {

/// Inner outputs of an expert are computed by two tiles: so many are quantised together.
constexpr int64_t kPiece = 2 * kernels::kTile;

/// Rows in the layout that products read.
struct RowForm {
    int64_t columns;
    bool quantised;

    size_t bytes() const { return quantised ? kernels::quantised_bytes(columns) : columns * sizeof(float); }

    /// Puts values [first, first + kPiece) of a row in their place.
    void put(const float* values, int64_t first, char* row) const {
        if (!quantised) {
            std::memcpy(row + first * sizeof(float), values, std::min(kPiece, columns - first) * sizeof(float));
            return;
        }
        alignas(4) char block[kernels::quantised_bytes(kPiece)];
        kernels().quantise(values, kPiece, block);
        const int64_t i = first / kPiece;
        std::memcpy(row + first, block, kPiece);
        std::memcpy(row + columns + 4 * i, block + kPiece, 4);
        std::memcpy(row + columns + columns / kPiece * 4 + 8 * i, block + kPiece + 4, 8);
    }
};

/// The rows between the gate and up products and the down products: rows for the down products, of each choice of each
/// row, then of the shared expert for each row.
struct Inner {
    RowForm routed, shared;

    int64_t bytes(int64_t used, int64_t n) const {
        return static_cast<int64_t>((used * routed.bytes() + shared.bytes()) * n);
    }
    char* shared_rows(const ggml_tensor* inner, int64_t used, int64_t n) const {
        return static_cast<char*>(inner->data) + used * n * routed.bytes();
    }
};

RowForm form_for(const ggml_tensor* down) {
    if (!down) return {0, false};
    const kernels::PackedTensor& w = *kernels::packed_of(down);
    return {w.columns, kernels::takes_quantised(w.format)};
}

/// Returns the layout of the rows between the products. Without a shared expert, its rows take no memory.
Inner inner_of(const ggml_tensor* down, const ggml_tensor* shared_down) {
    return {form_for(down), form_for(shared_down)};
}

struct OpenOptions {
    float clamp_routed, clamp_shared;
    bool shared;
};

/// 0 is no clamp.
float limit(float clamp) { return clamp > 0 ? clamp : INFINITY; }

/// Some rows, in both forms.
struct Inputs {
    const ggml_tensor *floats, *quantised;
    const int32_t* index;  // of the rows; null: all of them, in order
    int64_t count;

    kernels::Rows of(kernels::Format format) const {
        const ggml_tensor* x = kernels::takes_quantised(format) ? quantised : floats;
        return {x->data, x->nb[1], count, index};
    }
};

/// Gate and up of one expert, for the rows that want it.
struct Expert {
    kernels::Matrix gate, up;
    Inputs inputs;
    float clamp;
    RowForm form;
    char* inner;
    const int32_t* places;  // of the rows in `inner`; null: in order

    int64_t pieces() const { return (gate.rows + kPiece - 1) / kPiece; }

    /// The cost of a piece: the bytes that are read, and for each row about as much as a sixteenth of a byte for each
    /// weight.
    int64_t cost() const {
        const size_t bytes =
            kernels::tile_bytes(gate.format, gate.columns) + kernels::tile_bytes(up.format, up.columns);
        return static_cast<int64_t>(2 * bytes) + 2 * inputs.count * gate.columns * kPiece / 16;
    }

    /// The first piece that begins at this cost or after it.
    int64_t piece_at(int64_t at) const { return std::clamp<int64_t>((at + cost() - 1) / cost(), 0, pieces()); }

    void run(int64_t first, int64_t last) const;
};

/// Outputs of one piece for all rows: [rows][kPiece].
void multiply(const kernels::Matrix& matrix, const Inputs& inputs, int64_t piece, float* out) {
    const size_t bytes = kernels::tile_bytes(matrix.format, matrix.columns);
    const int64_t rows = std::min(kPiece, matrix.rows - piece * kPiece);
    const void* data = static_cast<const char*>(matrix.data) + 2 * piece * bytes;
    kernels().matmul({matrix.format, matrix.columns, rows, data}, inputs.of(matrix.format), 0, kernels::tiles(rows),
                     {out, kPiece});
}

void Expert::run(int64_t first, int64_t last) const {
    thread_local std::vector<float> g, u;
    g.resize(inputs.count * kPiece), u.resize(inputs.count * kPiece);
    for (int64_t piece = first; piece < last; piece++) {
        multiply(gate, inputs, piece, g.data());
        multiply(up, inputs, piece, u.data());
        kernels().swiglu(g.data(), u.data(), inputs.count * kPiece, clamp);
        for (int64_t r = 0; r < inputs.count; r++) {
            form.put(&g[r * kPiece], piece * kPiece, inner + (places ? places[r] : r) * form.bytes());
        }
    }
}

kernels::Matrix matrix_of(const ggml_tensor* w, int64_t index = 0) { return kernels::packed_of(w)->matrix(w, index); }

/// Gate, up and what is between: to rows for the down products. The pieces of all experts are shared out in one
/// sequence, by cost.
void open_experts(ggml_tensor* out, int ith, int nth, void*) {
    const auto options = options_of<OpenOptions>(out);
    const ggml_tensor *gate = out->src[0], *up = out->src[1], *selection = out->src[3], *h = out->src[4],
                      *quantised = out->src[options.shared ? 8 : 5];
    const int64_t used = selection->ne[0], n = selection->ne[1];
    const Inner inner = inner_of(out->src[2], options.shared ? out->src[7] : nullptr);
    thread_local Groups groups;
    thread_local std::vector<Expert> experts;
    groups.make(selection, kernels::packed_of(gate)->count);
    experts.clear();
    if (options.shared) {
        experts.push_back({matrix_of(out->src[5]),
                           matrix_of(out->src[6]),
                           {h, quantised, nullptr, n},
                           options.clamp_shared,
                           inner.shared,
                           inner.shared_rows(out, used, n),
                           nullptr});
    }
    for (int64_t i = 0; i < std::ssize(groups.experts); i++) {
        const int32_t e = groups.experts[i], first = groups.first[i];
        experts.push_back({matrix_of(gate, e),
                           matrix_of(up, e),
                           {h, quantised, &groups.rows[first], groups.size(i)},
                           options.clamp_routed,
                           inner.routed,
                           static_cast<char*>(out->data),
                           &groups.choices[first]});
    }
    int64_t total = 0, begin = 0;
    for (const Expert& expert : experts) total += expert.pieces() * expert.cost();
    const Part part(total, ith, nth);
    for (const Expert& expert : experts) {
        expert.run(expert.piece_at(part.first - begin), expert.piece_at(part.last - begin));
        begin += expert.pieces() * expert.cost();
    }
}

/// Zero in a thread's outputs, tiles of every row.
void clear(ggml_tensor* out, const Part& part) {
    const int64_t first = part.first * kernels::kTile, last = std::min(part.last * kernels::kTile, out->ne[0]);
    for (int64_t r = 0; r < out->ne[1]; r++) std::fill(row<float>(out, r) + first, row<float>(out, r) + last, 0.0f);
}

/// The down products of a thread's outputs, added up expert by expert.
void close_experts(ggml_tensor* out, int ith, int nth, void*) {
    const ggml_tensor *down = out->src[0], *opened = out->src[1], *selection = out->src[2], *weights = out->src[3],
                      *shared_down = out->src[4];
    const int64_t used = selection->ne[0], n = selection->ne[1];
    const Inner inner = inner_of(down, shared_down);
    const Part part(kernels::tiles(out->ne[0]), ith, nth);
    auto* data = static_cast<float*>(out->data);
    if (shared_down) {
        kernels().matmul(matrix_of(shared_down), {inner.shared_rows(opened, used, n), inner.shared.bytes(), n},
                         part.first, part.last, {data, out->ne[0]});
    } else {
        clear(out, part);
    }
    thread_local Groups groups;
    thread_local std::vector<float> scales;
    groups.make(selection, kernels::packed_of(down)->count);
    scales.resize(used * n);
    for (int64_t i = 0; i < used * n; i++) {
        scales[i] = element<float>(weights, groups.choices[i] % used, groups.choices[i] / used);
    }
    for (int64_t i = 0; i < std::ssize(groups.experts); i++) {
        const int32_t first = groups.first[i];
        const kernels::Rows rows{opened->data, inner.routed.bytes(), groups.size(i), &groups.choices[first]};
        kernels().matmul(matrix_of(down, groups.experts[i]), rows, part.first, part.last,
                         {data, out->ne[0], &groups.rows[first], &scales[first]});
    }
}

}  // namespace

ggml_tensor* moe(const Build& b, ggml_tensor* h, const Routes& routes, const MoeWeights& w, const MoeOptions& o) {
    const int64_t used = routes.experts->ne[0], n = h->ne[1];
    ggml_tensor* quantised = nullptr;
    for (const ggml_tensor* matrix : {w.gate, w.up, w.shared_gate, w.shared_up}) {
        if (!matrix) continue;
        const kernels::Format format = kernels::packed_of(matrix)->format;
        if (kernels::takes_quantised(format)) quantised = rows_for(b, format, h);
    }
    ggml_tensor* floats = rows_for(b, kernels::Format::f32, h);
    ggml_tensor* opened =
        node(b, GGML_TYPE_I8, {inner_of(w.down, w.shared_down).bytes(used, n)},
             {w.gate, w.up, w.down, routes.experts, floats, w.shared_gate, w.shared_up, w.shared_down, quantised},
             open_experts, OpenOptions{limit(o.clamp_routed), limit(o.clamp_shared), w.shared_down != nullptr});
    return node(b, GGML_TYPE_F32, {kernels::packed_of(w.down)->rows, n},
                {w.down, opened, routes.experts, routes.weights, w.shared_down}, close_experts);
}

}  // namespace ds4::ops::cpu
