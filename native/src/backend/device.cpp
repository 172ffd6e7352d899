#include "backend/device.h"

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <cstdlib>

#include "backend/abort.h"
#include "backend/rpc_device.h"
#include "ds4/errors.h"
#include "ds4/model.h"
#include "ggml-cpp.h"

namespace ds4 {
namespace backend {
namespace {

std::string lower(std::string s) {
    std::transform(s.begin(), s.end(), s.begin(), [](unsigned char c) { return std::tolower(c); });
    return s;
}

/// Turns a name such as "cuda:0" into ggml's name in lower case. ggml's names are CUDA0, ROCm0, Metal or MTL0, Vulkan0.
std::string ggml_name(const std::string& name) {
    std::string n = lower(name);
    n.erase(std::remove(n.begin(), n.end(), ':'), n.end());
    if (n.starts_with("hip")) n = "rocm" + n.substr(3);
    if (n == "cuda" || n == "rocm" || n == "vulkan") n += "0";
    return n;
}

bool matches(ggml_backend_dev_t device, const std::string& id) {
    const std::string name = lower(ggml_backend_dev_name(device));
    return name == id || (id.starts_with("metal") && (name.starts_with("metal") || name.starts_with("mtl")));
}

std::string device_list() {
    std::string list;
    for (size_t i = 0; i < ggml_backend_dev_count(); i++) {
        list += (i ? ", " : "") + std::string(ggml_backend_dev_name(ggml_backend_dev_get(i)));
    }
    return list;
}

/// Returns the device that DS4_DEVICE names, or an empty string when it is unset or "auto".
std::string device_of_environment() {
    const char* chosen = std::getenv("DS4_DEVICE");
    return chosen && lower(chosen) != "auto" ? chosen : "";
}

ggml_backend_dev_t best_device() {
    const std::string chosen = device_of_environment();
    if (!chosen.empty()) return find_device(chosen);
    for (auto type : {GGML_BACKEND_DEVICE_TYPE_GPU, GGML_BACKEND_DEVICE_TYPE_IGPU}) {
        if (ggml_backend_dev_t device = ggml_backend_dev_by_type(type)) return device;
    }
    return cpu_device();
}

/// Returns whether the CUDA, Metal and Vulkan backends all have GGML_OP_GET_ROWS for a type.
bool every_backend_gets_rows(ggml_type type) {
    constexpr ggml_type types[] = {GGML_TYPE_F32,  GGML_TYPE_F16,  GGML_TYPE_Q4_0, GGML_TYPE_Q4_1,
                                   GGML_TYPE_Q5_0, GGML_TYPE_Q5_1, GGML_TYPE_Q8_0};
    return std::ranges::find(types, type) != std::end(types);
}

}  // namespace

ggml_backend_dev_t cpu_device() {
    ggml_backend_dev_t device = ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU);
    if (!device) throw BackendError("ggml's CPU backend is not loaded: the installation is incomplete, install again");
    return device;
}

ggml_backend_dev_t find_device(const std::string& name) {
    if (is_remote(name)) return remote_device(name);
    const std::string id = ggml_name(name);
    if (id == "auto") return best_device();
    for (size_t i = 0; i < ggml_backend_dev_count(); i++) {
        if (matches(ggml_backend_dev_get(i), id)) return ggml_backend_dev_get(i);
    }
    throw RequestError("device '" + name + "' is not here; this build offers: " + device_list() +
                       ", rpc:HOST:PORT (other backends need a build with ggml's switch, e.g. "
                       "CMAKE_ARGS=-DGGML_CUDA=ON)");
}

bool is_auto(const std::string& name) { return lower(name) == "auto" && device_of_environment().empty(); }

std::vector<ggml_backend_dev_t> all_gpus() {
    std::vector<ggml_backend_dev_t> gpus;
    for (size_t i = 0; i < ggml_backend_dev_count(); i++) {
        ggml_backend_dev_t device = ggml_backend_dev_get(i);
        if (ggml_backend_dev_type(device) == GGML_BACKEND_DEVICE_TYPE_GPU) gpus.push_back(device);
    }
    if (gpus.empty())
        throw BackendError("there is no GPU to split the layers over; this build offers: " + device_list());
    return gpus;
}

bool supports_get_rows(ggml_backend_dev_t device, ggml_type type, int64_t columns, int64_t rows) {
    if (!endpoint_of(device).empty()) return every_backend_gets_rows(type);
    ggml_context_ptr ctx(ggml_init({4 * ggml_tensor_overhead(), nullptr, true}));
    ggml_tensor* matrix = ggml_new_tensor_2d(ctx.get(), type, columns, rows);
    return ggml_backend_dev_supports_op(
        device, ggml_get_rows(ctx.get(), matrix, ggml_new_tensor_1d(ctx.get(), GGML_TYPE_I32, 1)));
}

std::string name_of(ggml_backend_dev_t device) {
    const std::string endpoint = endpoint_of(device);
    return endpoint.empty() ? ggml_backend_dev_name(device) : "rpc:" + endpoint;
}

void set_threads(ggml_backend_t cpu, int threads) {
    auto set = proc_address<ggml_backend_set_n_threads_t>(cpu, "ggml_backend_set_n_threads");
    if (set) set(cpu, threads);
}

void set_abort_callback(ggml_backend_t cpu, ggml_abort_callback callback, void* data) {
    auto set = proc_address<ggml_backend_set_abort_callback_t>(cpu, "ggml_backend_set_abort_callback");
    if (set) set(cpu, callback, data);
}

}  // namespace backend

void load_backends(const std::string& directory) {
    ggml_log_set(
        [](ggml_log_level level, const char* text, void*) {
            if (level == GGML_LOG_LEVEL_ERROR || level == GGML_LOG_LEVEL_WARN) std::fputs(text, stderr);
        },
        nullptr);
    backend::explain_aborts();
    ggml_backend_load_all_from_path(directory.c_str());
}

}  // namespace ds4
