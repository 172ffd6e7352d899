#pragma once
// Finds ggml devices by the names that users type.

#include <cstdint>
#include <string>
#include <vector>

#include "ggml-backend.h"

namespace ds4::backend {

/// Finds a device by its name: "cpu", "cuda:0", "hip:0", "metal", "vulkan:0" or "rpc:HOST:PORT". "auto" is the device
/// that DS4_DEVICE names, else the first GPU, else the CPU. Throws RequestError listing the devices of this build when
/// the name fits none, BackendError for a remote device that does not answer.
ggml_backend_dev_t find_device(const std::string& name);

/// Returns whether a name leaves the choice to ds4: it is "auto", and DS4_DEVICE names no device.
bool is_auto(const std::string& name);
/// Returns all GPUs in ggml's order. Throws BackendError when there is none.
std::vector<ggml_backend_dev_t> all_gpus();

/// Returns the name of a device: ggml's, or "rpc:HOST:PORT" for a remote one.
std::string name_of(ggml_backend_dev_t device);

/// Returns whether a device supports GGML_OP_GET_ROWS on a matrix of this type and shape. A remote device cannot be
/// asked, so for it only types count that every GPU backend supports.
bool supports_get_rows(ggml_backend_dev_t device, ggml_type type, int64_t columns, int64_t rows);

/// Returns the CPU device. Throws BackendError when no CPU backend is loaded.
ggml_backend_dev_t cpu_device();

/// Returns a function of the CPU backend by name, or null when the backend has none. A portable build loads the CPU
/// backend at run time, so its functions cannot be linked.
template <typename F>
F proc_address(ggml_backend_t cpu, const char* name) {
    ggml_backend_reg_t reg = ggml_backend_dev_backend_reg(ggml_backend_get_device(cpu));
    return reinterpret_cast<F>(ggml_backend_reg_get_proc_address(reg, name));
}

void set_threads(ggml_backend_t cpu, int threads);
void set_abort_callback(ggml_backend_t cpu, ggml_abort_callback callback, void* data);

}  // namespace ds4::backend
