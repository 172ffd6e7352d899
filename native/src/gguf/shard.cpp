#include "gguf/shard.h"

#include "gguf/checked.h"
#include "gguf/header.h"
#include "gguf/tensors.h"

namespace ds4::gguf {

namespace {

constexpr const char* kAlignmentKey = "general.alignment";
constexpr int64_t kDefaultAlignment = 32, kMinAlignment = 8, kMaxAlignment = 1 << 24;

uint64_t alignment_of(const Mapping& file, const Metadata& metadata) {
    const Value* value = find_value(metadata, kAlignmentKey);
    if (value == nullptr) return kDefaultAlignment;
    const auto* number = std::get_if<int64_t>(value);
    const bool fits =
        number != nullptr && *number >= kMinAlignment && *number <= kMaxAlignment && (*number & (*number - 1)) == 0;
    if (!fits) {
        throw file.error(std::string("key '") + kAlignmentKey + "' is " + describe(*value) +
                         ", wanted a power of two from 8 to 2^24");
    }
    return static_cast<uint64_t>(*number);
}

/// Throws FormatError when another GGUF file follows the data: shards joined with `cat` parse as the first one alone.
void require_one_file(const Mapping& file, uint64_t end, uint64_t alignment) {
    for (const auto next : {std::optional(end), checked_align(end, alignment)}) {
        if (next && *next < file.size() && has_magic(file, *next)) {
            throw file.error("another GGUF file begins at byte " + std::to_string(*next) +
                             ", behind the data of the first; shards joined with cat are no GGUF file: name one of the "
                             "shards instead (the set is opened), or join them with llama-gguf-split --merge");
        }
    }
}

}  // namespace

Shard read_shard(const std::string& path) {
    Shard shard{};
    shard.file = std::make_unique<Mapping>(path);
    const Mapping& file = *shard.file;
    Cursor cursor(file);
    const Header header = read_header(cursor, file);
    shard.version = header.version;
    shard.metadata = read_metadata(cursor, header.keys);
    auto infos = read_tensor_infos(cursor, header.tensors);
    const uint64_t alignment = alignment_of(file, shard.metadata);
    // This cannot overflow: the cursor is inside the file, and files are smaller than 2^63 bytes.
    const uint64_t start = *checked_align(cursor.offset(), alignment);
    const uint64_t end = locate_tensors(file, infos, start, alignment);
    require_one_file(file, end, alignment);
    for (TensorInfo& info : infos) shard.tensors.push_back(std::move(info.tensor));
    return shard;
}

}  // namespace ds4::gguf
