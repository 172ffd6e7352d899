#pragma once
// Devices by the names people type.

#include <string>
#include <vector>

#include "ggml-backend.h"

namespace ds4::backend {

/// A device by its name: "cpu", "cuda:0", "hip:0", "metal", "vulkan:0", "rpc:HOST:PORT"; "auto" is what DS4_DEVICE
/// names where that is set, else the first GPU, else the CPU. Throws RequestError listing what there is when the name
/// fits no device, BackendError for a remote one that does not answer.
ggml_backend_dev_t find_device(const std::string& name);

/// Whether a name stands for whatever this machine has.
bool is_auto(const std::string& name);
/// In ggml's order; throws BackendError where there are none.
std::vector<ggml_backend_dev_t> all_gpus();

/// The name of a device: ggml's, "rpc:HOST:PORT" for a remote one.
std::string name_of(ggml_backend_dev_t device);

/// Whether a device can look rows up in a matrix of this type and shape, on our word or ggml's: no remote device says.
bool supports_get_rows(ggml_backend_dev_t device, ggml_type type, int64_t columns, int64_t rows);

/// The CPU device. Throws BackendError when no CPU backend is loaded.
ggml_backend_dev_t cpu_device();

/// One of the CPU backend's own functions, which a portable build loads at run time; null where it has none.
template <typename F>
F proc_address(ggml_backend_t cpu, const char* name) {
    ggml_backend_reg_t reg = ggml_backend_dev_backend_reg(ggml_backend_get_device(cpu));
    return reinterpret_cast<F>(ggml_backend_reg_get_proc_address(reg, name));
}

void set_threads(ggml_backend_t cpu, int threads);
void set_abort_callback(ggml_backend_t cpu, ggml_abort_callback callback, void* data);

}  // namespace ds4::backend
