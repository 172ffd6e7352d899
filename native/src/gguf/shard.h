#pragma once
// Reads one GGUF file, or all files of a split model.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "gguf/mapping.h"
#include "gguf/metadata.h"

namespace ds4::gguf {

/// One GGUF file on disk, validated.
struct Shard {
    std::unique_ptr<Mapping> file;
    uint32_t version;
    Metadata metadata;
    std::vector<Tensor> tensors;
};

/// Maps and validates one file. Throws FormatError.
Shard read_shard(const std::string& path);

/// Reads all shards of the split model that `path` belongs to, in order, or the file alone when it is not split. Throws
/// FormatError naming the shard that is missing or does not belong.
std::vector<Shard> read_shards(const std::string& path);

}  // namespace ds4::gguf
