#pragma once
// What ggml offers in this build, for people to look at.

#include <string>
#include <utility>
#include <vector>

namespace ds4::backend {

struct DeviceFacts {
    std::string name, description;
    std::string kind;                  // "cpu", "gpu", "igpu", "accelerator", "meta"
    std::string id;                    // of a PCI device its address, else empty
    size_t memory_free, memory_total;  // bytes; 0 where ggml does not know
    bool addresses_host_memory;        // weights can be used from the mapping
};

struct BackendFacts {
    std::string name;                                           // ggml's: "CPU", "CUDA", "ROCm", "MTL", "Vulkan", "RPC"
    std::vector<std::pair<std::string, std::string>> features;  // what ggml says of how it was built
    std::vector<DeviceFacts> devices;
};

/// The backends that are registered, those without a device too.
std::vector<BackendFacts> backends();

}  // namespace ds4::backend
