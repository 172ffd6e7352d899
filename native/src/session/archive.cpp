#include "session/archive.h"

#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "ds4/errors.h"

namespace ds4::session {
namespace {

constexpr char kMagic[9] = "DS4STATE";
constexpr uint32_t kVersion = 3;

/// FNV-1a over eight bytes at a time: a damaged file must not be continued from.
uint64_t checksum(uint64_t h, const char* data, size_t size) {
    for (size_t i = 0; i < size; i += 8) {
        uint64_t word = 0;
        std::memcpy(&word, data + i, std::min<size_t>(8, size - i));
        h = (h ^ word) * 0x9e3779b97f4a7c15;
        h ^= h >> 32;
    }
    return h;
}

uint64_t checksum(const ArchiveHeader& header, const std::vector<char>& body) {
    const uint64_t h = checksum(0xcbf29ce484222325, reinterpret_cast<const char*>(&header), sizeof header);
    return checksum(h, body.data(), body.size());
}

FormatError damaged(const std::string& path, const std::string& what) {
    return FormatError("'" + path + "' is not a usable saved session: " + what);
}

void check_header(const std::string& path, const ArchiveHeader& h, uint64_t file_size) {
    if (std::memcmp(h.magic, kMagic, 8) != 0) throw damaged(path, "it does not begin with DS4STATE");
    if (h.version != kVersion) {
        throw damaged(path, "its version is " + std::to_string(h.version) + ", wanted " + std::to_string(kVersion));
    }
    const uint64_t wanted = file_size - sizeof h - sizeof(uint64_t);
    if (h.body != wanted) {
        throw damaged(path, "it holds " + std::to_string(wanted) + " bytes of state, its header says " +
                                std::to_string(h.body) + "; it was cut off or added to");
    }
}

/// A file that stands behind its header, which has been checked against the file's length.
std::ifstream open_archive(const std::string& path, ArchiveHeader& header) {
    std::ifstream file(path, std::ios::binary | std::ios::ate);
    if (!file) throw damaged(path, "it cannot be opened");
    const auto size = static_cast<uint64_t>(file.tellg());
    if (size < sizeof header + sizeof(uint64_t)) {
        throw damaged(path, "it is " + std::to_string(size) + " bytes long, shorter than a header");
    }
    file.seekg(0);
    file.read(reinterpret_cast<char*>(&header), sizeof header);
    check_header(path, header, size);
    return file;
}

}  // namespace

void write_archive(const std::string& path, ArchiveHeader header, const std::vector<char>& body) {
    std::memcpy(header.magic, kMagic, 8);
    header.version = kVersion;
    header.body = body.size();
    const uint64_t sum = checksum(header, body);
    const std::string temporary = path + ".part";
    std::ofstream file(temporary, std::ios::binary | std::ios::trunc);
    file.write(reinterpret_cast<const char*>(&header), sizeof header);
    file.write(body.data(), static_cast<std::streamsize>(body.size()));
    file.write(reinterpret_cast<const char*>(&sum), sizeof sum);
    file.close();
    std::error_code failed;
    if (file) std::filesystem::rename(temporary, path, failed);
    if (!file || failed) {
        std::remove(temporary.c_str());
        throw Error("cannot write the session to '" + path +
                    "': " + (failed ? failed.message() : "no such folder, no permission, or the disk is full"));
    }
}

Archive read_archive(const std::string& path) {
    Archive a;
    std::ifstream file = open_archive(path, a.header);
    a.body.resize(a.header.body);
    uint64_t sum = 0;
    file.read(a.body.data(), static_cast<std::streamsize>(a.body.size()));
    file.read(reinterpret_cast<char*>(&sum), sizeof sum);
    if (!file || sum != checksum(a.header, a.body)) throw damaged(path, "its checksum does not match; it is damaged");
    return a;
}

Archive read_beginning(const std::string& path, uint64_t (*bytes)(const ArchiveHeader&)) {
    Archive a;
    std::ifstream file = open_archive(path, a.header);
    const uint64_t wanted = bytes(a.header);
    if (wanted > a.header.body) throw damaged(path, "it is too short for what its header says");
    a.body.resize(wanted);
    file.read(a.body.data(), static_cast<std::streamsize>(wanted));
    if (!file) throw damaged(path, "it cannot be read");
    return a;
}

}  // namespace ds4::session
