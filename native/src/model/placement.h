#pragma once
// Where the weights go: packed for the CPU's kernels, used from the file's mapping, or uploaded.

#include <deque>
#include <vector>

#include "ds4/model.h"
#include "model/packing.h"

namespace ds4::model {

/// Whether graphs on a device are computed by the CPU's own kernels: on the CPU, unless DS4_OPS=generic is set.
bool own_kernels(ggml_backend_dev_t device);

/// What holds the weights' data.
struct Placed {
    std::vector<ggml_backend_buffer_ptr> buffers;
    std::deque<kernels::PackedTensor> packed;  // tensors point to these
};

/// Gives every tensor of `ctx` its data. The `packable` ones whose types have kernels are packed for the CPU, unless
/// memory would not suffice, or used as they lie where the file has them packed. Without kernels of ours there are
/// none. Tensors in `on_host` stay in host memory whatever the device. Throws BackendError when the device has no room,
/// RequestError for a packed file where our kernels do not compute, FormatError for one that is packed otherwise.
Placed place_weights(ggml_context* ctx, const gguf::File& file, ggml_backend_dev_t device, int threads,
                     const std::vector<ggml_tensor*>& on_host, const std::vector<Packable>& packable,
                     const LoadProgress& progress);

}  // namespace ds4::model
