#pragma once
// The saved form of a session: a fixed header, then tokens, positions of checkpoints, logits, rings and compressed
// rows, the drafter's rings, checkpoints (a mark and the rings of each), then a checksum of all of it.

#include <cstdint>
#include <string>
#include <vector>

#include "session/checkpoint.h"

namespace ds4::session {

struct ArchiveHeader {
    char magic[8];  // "DS4STATE"
    uint32_t version;
    uint32_t kv_type;
    uint64_t model;    // Model::fingerprint
    uint64_t drafter;  // Drafter::fingerprint, 0 without one
    int64_t context;
    Mark mark;
    uint64_t logits;  // number of logits after the tokens: the vocabulary's size, or 0
    uint64_t checkpoints;
    uint64_t body;  // bytes after the header, the checksum not counted
};

/// Writes header, body and checksum to a temporary file and renames it. Throws Error with the path.
void write_archive(const std::string& path, ArchiveHeader header, const std::vector<char>& body);

/// The content of a saved session.
struct Archive {
    ArchiveHeader header;
    std::vector<char> body;
};

/// Reads a file and checks its length, magic, version and checksum. Throws FormatError.
Archive read_archive(const std::string& path);

/// Reads the header and the first `bytes(header)` bytes of the body, without the checksum. Throws FormatError.
Archive read_beginning(const std::string& path, uint64_t (*bytes)(const ArchiveHeader&));

}  // namespace ds4::session
