#pragma once
// Estimates the memory that a target and its drafter take on each device, before anything is loaded.

#include <string>
#include <vector>

#include "ds4/model.h"

namespace ds4 {

/// The memory that one device needs and has, in bytes.
struct DeviceMemory {
    std::string device;
    bool host = false;     // whether this is the CPU, which uses weights from the file's mapping
    size_t weights = 0;    // the target's weights, without its routed experts
    size_t experts = 0;    // the target's routed experts
    size_t packed = 0;     // on the CPU: the copies of weights that are packed for ds4's kernels
    size_t state = 0;      // the KV state of one session, with the drafter's
    size_t scratch = 0;    // compute buffers of the graphs that a session keeps: prompt chunk, verifies, drafts
    size_t drafter = 0;    // the drafter's weights
    size_t available = 0;  // bytes that are free on the device now
};

/// Returns the memory of every device that computes a part of the model, under the same device map that Model::load and
/// Session use. Compute buffers are measured as if the device ran each graph whole, which is an upper bound for a
/// device that runs a part. `drafter` may be null. Throws FormatError for a file that is not what it should be,
/// PairError when the two do not fit, and RequestError or BackendError for devices and options as Model::load does.
std::vector<DeviceMemory> memory_by_device(const gguf::File& target, const gguf::File* drafter,
                                           const ModelOptions& options, int64_t context, ggml_type kv_type);

}  // namespace ds4
