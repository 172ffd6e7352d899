#include "model/device.h"

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <cstdlib>

#include "ds4/errors.h"
#include "ds4/model.h"
#include "model/remote.h"

namespace ds4 {
namespace model {
namespace {

std::string lower(std::string s) {
    std::transform(s.begin(), s.end(), s.begin(), [](unsigned char c) { return std::tolower(c); });
    return s;
}

/// ggml calls devices CUDA0, ROCm0, Metal or MTL0, Vulkan0: "cuda:0" and the like name the same.
std::string ggml_name(const std::string& name) {
    std::string n = lower(name);
    n.erase(std::remove(n.begin(), n.end(), ':'), n.end());
    if (n.starts_with("hip")) n = "rocm" + n.substr(3);
    if (n == "cuda" || n == "rocm" || n == "vulkan") n += "0";
    return n;
}

bool answers_to(ggml_backend_dev_t device, const std::string& wanted) {
    const std::string name = lower(ggml_backend_dev_name(device));
    return name == wanted || (wanted.starts_with("metal") && (name.starts_with("metal") || name.starts_with("mtl")));
}

std::string device_list() {
    std::string list;
    for (size_t i = 0; i < ggml_backend_dev_count(); i++) {
        list += (i ? ", " : "") + std::string(ggml_backend_dev_name(ggml_backend_dev_get(i)));
    }
    return list;
}

ggml_backend_dev_t best_device() {
    const char* chosen = std::getenv("DS4_DEVICE");
    if (chosen && *chosen && lower(chosen) != "auto") return find_device(chosen);
    for (auto type : {GGML_BACKEND_DEVICE_TYPE_GPU, GGML_BACKEND_DEVICE_TYPE_IGPU}) {
        if (ggml_backend_dev_t device = ggml_backend_dev_by_type(type)) return device;
    }
    return cpu_device();
}

}  // namespace

ggml_backend_dev_t cpu_device() {
    ggml_backend_dev_t device = ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU);
    if (!device) throw BackendError("ggml's CPU backend is not loaded: the installation is incomplete, install again");
    return device;
}

ggml_backend_dev_t find_device(const std::string& name) {
    if (is_remote(name)) return remote_device(name);
    const std::string wanted = ggml_name(name);
    if (wanted == "auto") return best_device();
    for (size_t i = 0; i < ggml_backend_dev_count(); i++) {
        if (answers_to(ggml_backend_dev_get(i), wanted)) return ggml_backend_dev_get(i);
    }
    throw RequestError("device '" + name + "' is not here; this build offers: " + device_list() +
                       ", rpc:HOST:PORT (other backends need a build with ggml's switch, e.g. "
                       "CMAKE_ARGS=-DGGML_CUDA=ON)");
}

std::string name_of(ggml_backend_dev_t device) {
    const std::string endpoint = endpoint_of(device);
    return endpoint.empty() ? ggml_backend_dev_name(device) : "rpc:" + endpoint;
}

void set_threads(ggml_backend_t cpu, int threads) {
    auto set = entry_point<ggml_backend_set_n_threads_t>(cpu, "ggml_backend_set_n_threads");
    if (set) set(cpu, threads);
}

void set_abort_callback(ggml_backend_t cpu, ggml_abort_callback callback, void* data) {
    auto set = entry_point<ggml_backend_set_abort_callback_t>(cpu, "ggml_backend_set_abort_callback");
    if (set) set(cpu, callback, data);
}

}  // namespace model

void load_backends(const std::string& directory) {
    ggml_log_set(
        [](ggml_log_level level, const char* text, void*) {
            if (level == GGML_LOG_LEVEL_ERROR || level == GGML_LOG_LEVEL_WARN) std::fputs(text, stderr);
        },
        nullptr);
    ggml_backend_load_all_from_path(directory.c_str());
}

}  // namespace ds4
