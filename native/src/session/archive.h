#pragma once
// The saved form of a session: a fixed header, then tokens, positions of checkpoints, logits, rings and compressed
// rows, the drafter's rings, checkpoints (its counters and the rings of each), then a checksum of all of it.

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
    SnapshotCounters counters;
    uint64_t logits;  // how many follow the tokens: the vocabulary, or 0
    uint64_t checkpoints;
    uint64_t body;  // bytes after the header, the checksum not counted
};

/// Writes header, body and checksum under a temporary name and renames it. Throws Error naming the path.
void write_archive(const std::string& path, ArchiveHeader header, const std::vector<char>& body);

/// Reads and checks a file: length, magic, version, checksum. Throws FormatError.
struct Archive {
    ArchiveHeader header;
    std::vector<char> body;
};
Archive read_archive(const std::string& path);

/// The first `bytes` of the body that the header asks for, and no checksum. Throws FormatError.
Archive read_beginning(const std::string& path, uint64_t (*bytes)(const ArchiveHeader&));

}  // namespace ds4::session
