#pragma once
// Files whose matrices were packed for the CPU's kernels ahead of time (docs/formats.md): they say what they stand for.

#include <string>
#include <vector>

#include "gguf/mapping.h"
#include "gguf/metadata.h"

namespace ds4::gguf {

/// The layout that a packed file follows, and after which a file is known as one.
inline const std::string kLayoutKey = "ds4.packed.layout";
/// Names of the packed tensors, their types as ggml counts them, and their shapes, three numbers each.
inline const std::string kPackedTensorsKey = "ds4.packed.tensors";
inline const std::string kPackedTypesKey = "ds4.packed.types";
inline const std::string kPackedShapesKey = "ds4.packed.shapes";
/// What the architecture of a packed file ends in, so that no other program takes its bytes for rows.
inline const std::string kPackedSuffix = "-packed";

/// In a packed file, gives the architecture its name back, and packed tensors the type and shape that they stand for;
/// `packed` and `nbytes` say how they lie. Throws FormatError for another layout, and naming the tensor whose place or
/// size is not what its type and shape want. `metadata` is that of the first shard, whose mapping `file` is.
void read_packed(const Mapping& file, Metadata& metadata, std::vector<Tensor>& tensors);

}  // namespace ds4::gguf
