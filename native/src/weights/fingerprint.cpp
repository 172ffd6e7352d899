#include "weights/fingerprint.h"

#include <algorithm>

namespace ds4::weights {
namespace {

uint64_t hash_bytes(uint64_t h, const void* data, size_t size) {
    const auto* bytes = static_cast<const unsigned char*>(data);
    for (size_t i = 0; i < size; i++) h = (h ^ bytes[i]) * 0x100000001b3;  // FNV-1a
    return h;
}

}  // namespace

uint64_t fingerprint(const gguf::File& file) {
    constexpr size_t kSample = 64;
    uint64_t h = 0xcbf29ce484222325;
    for (const gguf::Tensor& t : file.tensors()) {
        h = hash_bytes(h, t.name.data(), t.name.size());
        h = hash_bytes(h, &t.type, sizeof t.type);
        h = hash_bytes(h, t.ne.data(), sizeof t.ne);
        h = hash_bytes(h, t.data, std::min(t.nbytes, kSample));
    }
    return h;
}

}  // namespace ds4::weights
