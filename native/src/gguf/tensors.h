#pragma once
// Reads the tensor infos of a GGUF file, and locates the data.

#include <cstdint>
#include <string>
#include <vector>

#include "gguf/cursor.h"
#include "gguf/gguf.h"

namespace ds4::gguf {

/// A tensor info as the file has it; `offset`, in bytes from the start of the data section, is not checked yet.
struct TensorInfo {
    Tensor tensor;
    uint64_t offset;
};

/// Reads `count` tensor infos, and checks name, shape, type and size. Throws FormatError naming the tensor.
std::vector<TensorInfo> read_tensor_infos(Cursor& cursor, uint64_t count);

/// Sets `data` of every tensor, after checking that it is aligned to `alignment`, inside the file, and does not overlap
/// another. `start` is the offset of the data section in the file. Returns the end of the last tensor, or `start` when
/// there is none. Throws FormatError naming the tensor.
uint64_t locate_tensors(const Mapping& file, std::vector<TensorInfo>& infos, uint64_t start, uint64_t alignment);

/// Formats a shape in ggml's order: "(64, 512)".
std::string show_shape(const Tensor& tensor);

/// Returns the name of a type in upper case: "Q4_K", "F32".
std::string type_name(ggml_type type);

}  // namespace ds4::gguf
