#pragma once
// The tensor section of a GGUF file, and where the data lies.

#include <vector>

#include "gguf/cursor.h"
#include "gguf/gguf.h"

namespace ds4::gguf {

/// A tensor whose place is not checked yet; `offset` counts from the beginning of the data.
struct TensorInfo {
    Tensor tensor;
    uint64_t offset;
};

/// Reads `count` descriptions: name, shape, type and size are valid afterwards. Throws FormatError naming the tensor.
std::vector<TensorInfo> read_tensor_infos(Cursor& cursor, uint64_t count);

/// Sets `data` of every tensor after checking that it is aligned, inside the file and apart from the others.
/// `start` is where the data begins. Returns the end of the last tensor, or `start` without tensors.
uint64_t locate_tensors(const Mapping& file, std::vector<TensorInfo>& infos, uint64_t start, uint64_t alignment);

/// "(64, 512)": the shape in ggml's order.
std::string show_shape(const Tensor& tensor);

/// The type's name as people write it: "Q4_K", "F32".
std::string type_name(ggml_type type);

}  // namespace ds4::gguf
