#pragma once
// Packing: ggml's rows are interleaved to tiles (layout.h).

#include <optional>

#include "cpu/packed_tensor.h"

namespace ds4::kernels {

/// The format of a ggml type, if products of it are computed here.
std::optional<Format> format_of(ggml_type type);

/// Bytes of a tile of `columns` columns, a whole number of ggml's blocks.
size_t tile_bytes(Format format, int64_t columns);

inline size_t packed_bytes(Format format, int64_t columns, int64_t rows) {
    return static_cast<size_t>(tiles(rows)) * tile_bytes(format, columns);
}

/// Returns the packed layout of `count` matrices of a type; nothing for a type without kernels, or for a number of
/// columns that its kernels do not support.
std::optional<PackedTensor> packed_shape(ggml_type type, int64_t columns, int64_t rows, int64_t count);

/// Packs up to 16 rows as ggml stores them, `stride` bytes apart; rows that are missing count as zeros.
void pack_tile(Format format, const void* rows, size_t stride, int64_t count, int64_t columns, void* out);

}  // namespace ds4::kernels
