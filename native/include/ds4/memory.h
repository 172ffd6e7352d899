#pragma once
// What a target and its drafter take of each device, known before anything is loaded.

#include <string>
#include <vector>

#include "ds4/model.h"

namespace ds4 {

/// Bytes of one device.
struct DeviceMemory {
    std::string device;
    bool host = false;     // the CPU: weights are used from the file's mapping, which may be paged out
    size_t weights = 0;    // the target's, routed experts not counted
    size_t experts = 0;    // its routed experts
    size_t packed = 0;     // on the CPU: the copies of weights that our own kernels want
    size_t state = 0;      // of one session: keys and rings, the drafter's, too
    size_t scratch = 0;    // in which the graphs run that a session keeps: a prompt's widest chunk, verifies, drafts
    size_t drafter = 0;    // its weights
    size_t available = 0;  // now
};

/// Every device that computes something, by the same placement as Model::load and Session. Scratch is measured for a
/// device that runs a whole graph, which one that shares it with others does not exceed. Throws FormatError for a file
/// that is not what it should be, PairError, and as Model::load does for devices and numbers.
std::vector<DeviceMemory> memory_by_device(const gguf::File& target, const gguf::File* drafter,
                                           const ModelOptions& options, int64_t context, ggml_type kv_type);

}  // namespace ds4
