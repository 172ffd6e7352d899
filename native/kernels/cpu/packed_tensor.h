#pragma once
// ggml tensors whose data is packed. ggml itself must not compute with them; `extra` tells them apart.

#include <cstddef>

#include "cpu/kernels.h"
#include "ggml.h"

namespace ds4::kernels {

/// One or several matrices of the same shape behind each other: experts, or groups of outputs with inputs of their own.
struct PackedTensor {
    Format format;
    int64_t columns, rows, count;  // of one matrix; matrices
    size_t bytes;                  // of one matrix

    /// The matrix at `index` of a tensor that carries this.
    Matrix matrix(const ggml_tensor* tensor, int64_t index) const {
        return {format, columns, rows,
                static_cast<const std::byte*>(tensor->data) + static_cast<size_t>(index) * bytes};
    }
};

/// The shape of a packed tensor, from its `extra`; null for a tensor in ggml's own layout.
inline const PackedTensor* packed_of(const ggml_tensor* tensor) {
    return static_cast<const PackedTensor*>(tensor->extra);
}

}  // namespace ds4::kernels
