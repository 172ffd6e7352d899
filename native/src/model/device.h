#pragma once
// Devices by the names people type.

#include <string>

#include "ggml-backend.h"

namespace ds4::model {

/// Throws RequestError listing what there is when the name fits no device.
ggml_backend_dev_t find_device(const std::string& name);

/// The CPU device. Throws BackendError when no CPU backend is loaded.
ggml_backend_dev_t cpu_device();

/// Calls the CPU backend's own entry points, which a portable build loads at run time.
/// Bytes that can be taken without others having to give theirs up, as far as the system says.
size_t available_memory();

void set_threads(ggml_backend_t cpu, int threads);
void set_abort_callback(ggml_backend_t cpu, ggml_abort_callback callback, void* data);

}  // namespace ds4::model
