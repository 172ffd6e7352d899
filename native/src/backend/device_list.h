#pragma once
// Lists the backends and devices of this build, for people to look at.

#include <string>
#include <utility>
#include <vector>

namespace ds4::backend {

/// One ggml device.
struct DeviceFacts {
    std::string name, description;
    std::string kind;                  // "cpu", "gpu", "igpu", "accelerator", "meta"
    std::string id;                    // the address of a PCI device, else empty
    size_t memory_free, memory_total;  // bytes; 0 when ggml does not know
    bool addresses_host_memory;        // whether weights can be used from a file's mapping
};

/// One registered ggml backend with its devices.
struct BackendFacts {
    std::string name;                                           // "CPU", "CUDA", "ROCm", "MTL", "Vulkan", "RPC"
    std::vector<std::pair<std::string, std::string>> features;  // build features by name, such as "AVX2"
    std::vector<DeviceFacts> devices;
};

/// Returns the registered backends, including those without a device.
std::vector<BackendFacts> backends();

}  // namespace ds4::backend
