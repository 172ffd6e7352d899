#pragma once
// Files whose matrices were packed for the CPU's kernels ahead of time (docs/formats.md). Their metadata has the types
// and shapes before packing.

#include <string>
#include <vector>

#include "gguf/mapping.h"
#include "gguf/metadata.h"

namespace ds4::gguf {

/// The key with the version of the packed layout; it marks a file as packed.
inline const std::string kLayoutKey = "ds4.packed.layout";
/// The keys with the names of the packed tensors, their ggml types, and their shapes (three numbers each).
inline const std::string kPackedTensorsKey = "ds4.packed.tensors";
inline const std::string kPackedTypesKey = "ds4.packed.types";
inline const std::string kPackedShapesKey = "ds4.packed.shapes";
/// The suffix of a packed file's architecture. It keeps other programs from reading packed bytes as rows.
inline const std::string kPackedSuffix = "-packed";

/// Restores, in a packed file, the name of the architecture and the type and shape of each packed tensor; `packed` and
/// `nbytes` of the tensor describe how it lies in the file. Does nothing for other files. `file` and `metadata` are
/// those of the first shard. Throws FormatError for another layout version, and naming a tensor whose alignment or size
/// does not fit its type and shape.
void read_packed(const Mapping& file, Metadata& metadata, std::vector<Tensor>& tensors);

}  // namespace ds4::gguf
