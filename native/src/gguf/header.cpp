#include "gguf/header.h"

#include <algorithm>

#include "gguf/text.h"

namespace ds4::gguf {

namespace {

using namespace std::string_view_literals;

constexpr std::string_view kMagic = "GGUF";
constexpr std::string_view kExpected = "wanted a GGUF file";

/// A file format that is not GGUF: its first bytes, and what to tell the user.
struct OtherFormat {
    std::string_view start, what;
};

constexpr std::string_view kConvert = "; convert the checkpoint with deepseek4-quantize";
constexpr OtherFormat kOtherFormats[] = {
    {"FUGG"sv, "a GGUF file of the other byte order; convert it with gguf_convert_endian"},
    {"lmgg"sv, "an old GGML file, from before GGUF; convert the original checkpoint again"},
    {"tjgg"sv, "an old GGML (ggjt) file, from before GGUF; convert the original checkpoint again"},
    {"fmgg"sv, "an old GGML (ggmf) file, from before GGUF; convert the original checkpoint again"},
    {"PK\x03\x04"sv, "a zip archive, perhaps a PyTorch checkpoint; convert the checkpoint with deepseek4-quantize"},
    {"\x80\x02"sv, "a Python pickle, perhaps a PyTorch checkpoint; convert the checkpoint with deepseek4-quantize"},
    {"\x1f\x8b"sv, "a gzip archive; unpack it first"},
    {"\x28\xb5\x2f\xfd"sv, "a zstd archive; unpack it first"},
    {"version https://git-lfs"sv, "a git-lfs pointer instead of the file it stands for; fetch it with git lfs pull"},
    {"<"sv, "a web page, perhaps the error of a failed download; download it again"},
    {"{"sv, "JSON text; name the model file beside it"},
    {"\0\0\0\0\0\0\0\0"sv, "an unfinished download: it begins with zeros; download it again"},
};

std::string_view start_of(const Mapping& file, uint64_t offset, uint64_t size) {
    const auto* text = reinterpret_cast<const char*>(file.data());
    return std::string_view(text, file.size()).substr(std::min(offset, file.size()), size);
}

/// Returns whether the file begins as a safetensors file does: a 64-bit length, then so many bytes of JSON.
bool is_safetensors(const Mapping& file) {
    if (file.size() < 10) return false;
    uint64_t length;
    std::memcpy(&length, file.data(), sizeof(length));
    return length <= file.size() - 8 && start_of(file, 8, 1) == "{";
}

std::string looks_like(const Mapping& file) {
    if (is_safetensors(file)) return " It looks like a safetensors file" + std::string(kConvert);
    for (const OtherFormat& kind : kOtherFormats) {
        if (start_of(file, 0, kind.start.size()) == kind.start) return " It looks like " + std::string(kind.what);
    }
    return "";
}

void require_version(const Cursor& cursor, uint32_t version) {
    if (version == 2 || version == 3) return;
    std::string hint = "; a newer format needs a newer reader";
    if (version == 1) hint = "; version 1 is from before August 2023, convert the model again";
    if (version != 0 && (version & 0xffff) == 0) {
        hint = "; the file is big-endian, convert it with gguf_convert_endian";
    }
    cursor.fail("header", "GGUF version " + std::to_string(version) + ", wanted 2 or 3" + hint);
}

}  // namespace

bool has_magic(const Mapping& file, uint64_t offset) { return start_of(file, offset, 4) == kMagic; }

Header read_header(Cursor& cursor, const Mapping& file) {
    if (!has_magic(file, 0)) {
        const std::string found = quote(start_of(file, 0, 4));
        throw file.error("begins with " + found + ", " + std::string(kExpected) + " (it begins with 'GGUF')." +
                         looks_like(file));
    }
    cursor.bytes(4, 1, "magic");
    Header header{};
    header.version = cursor.read<uint32_t>("header, version");
    require_version(cursor, header.version);
    header.tensors = cursor.read<uint64_t>("header, number of tensors");
    header.keys = cursor.read<uint64_t>("header, number of metadata keys");
    return header;
}

}  // namespace ds4::gguf
