#pragma once
// Loads weights: packed for ds4's CPU kernels, used from the file's mapping, or uploaded to a device.

#include <deque>
#include <functional>
#include <vector>

#include "ds4/model.h"
#include "weights/packing.h"

namespace ds4::weights {

/// Returns whether ds4's CPU kernels compute what is on the CPU: true unless DS4_OPS is "generic".
bool own_kernels();

/// Returns the device of a tensor.
using DeviceOf = std::function<ggml_backend_dev_t(const ggml_tensor*)>;

/// The memory of loaded weights.
struct LoadedWeights {
    std::vector<ggml_backend_buffer_ptr> buffers;
    std::deque<kernels::PackedTensor> packed;  // tensors point to these
};

/// Gives every tensor of `ctx` its data on its device. Each `packable` tensor, all of which are the CPU's, is packed
/// when its type has a kernel and `reserve` bytes of host memory stay free; one that lies packed in the file is used
/// from the mapping. Packs with `threads` threads. Throws BackendError when a device has no room, RequestError for a
/// packed file whose tensors ds4's CPU kernels do not compute, FormatError for a file that is packed differently.
LoadedWeights load_weights(ggml_context* ctx, const gguf::File& file, const DeviceOf& device_of, int threads,
                           const std::vector<Packable>& packable, size_t reserve, const LoadProgress& progress);

}  // namespace ds4::weights
