#pragma once
// Where the weights go: used from the file's mapping, or uploaded.

#include <vector>

#include "ds4/model.h"

namespace ds4::model {

/// Gives every tensor of `ctx` its data and returns the buffers that hold it. Tensors in `on_host` stay in host
/// memory whatever the device. Throws BackendError when the device has no room.
std::vector<ggml_backend_buffer_ptr> place_weights(ggml_context* ctx, const gguf::File& file, ggml_backend_dev_t device,
                                                   const std::vector<ggml_tensor*>& on_host,
                                                   const LoadProgress& progress);

}  // namespace ds4::model
