#pragma once
// Loads weights: packed for the CPU's kernels, used from the file's mapping, or uploaded to a device.

#include <deque>
#include <functional>
#include <vector>

#include "ds4/model.h"
#include "weights/packing.h"

namespace ds4::weights {

/// Whether ds4's kernels compute what is on the CPU: unless DS4_OPS=generic is set.
bool own_kernels();

/// The device of a tensor.
using DeviceOf = std::function<ggml_backend_dev_t(const ggml_tensor*)>;

/// The memory that holds loaded weights.
struct LoadedWeights {
    std::vector<ggml_backend_buffer_ptr> buffers;
    std::deque<kernels::PackedTensor> packed;  // tensors point to these
};

/// Gives every tensor of `ctx` its data on its device. The `packable` ones, all of the CPU, whose types have kernels
/// are packed, unless memory would not suffice with `reserve` bytes left, or used as they lie where the file has them
/// packed. Throws BackendError when a device has no room, RequestError for a file that is packed where our kernels do
/// not compute, FormatError for one that is packed otherwise.
LoadedWeights load_weights(ggml_context* ctx, const gguf::File& file, const DeviceOf& device_of, int threads,
                           const std::vector<Packable>& packable, size_t reserve, const LoadProgress& progress);

}  // namespace ds4::weights
