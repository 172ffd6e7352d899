#pragma once
// One GGUF file on disk, whole and valid; split.cpp puts several together.

#include <memory>
#include <string>
#include <vector>

#include "gguf/mapping.h"
#include "gguf/metadata.h"

namespace ds4::gguf {

struct Shard {
    std::unique_ptr<Mapping> file;
    uint32_t version;
    Metadata metadata;
    std::vector<Tensor> tensors;
};

/// Maps and validates the file. Throws FormatError.
Shard read_shard(const std::string& path);

/// All shards of the set that `path` belongs to, in order; one for a file that is not split. Throws FormatError
/// naming the shard that is missing or does not belong.
std::vector<Shard> read_shards(const std::string& path);

}  // namespace ds4::gguf
