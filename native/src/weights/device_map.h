#pragma once
// The device map: which device computes which part of a model.

#include <cstdint>
#include <string>
#include <vector>

#include "ggml-backend.h"
#include "kernel_choice.h"

namespace ds4::weights {

/// Says which device computes each part of a model. The weights and state of a part lie on that device. A device index
/// is an index of `devices`.
struct DeviceMap {
    std::vector<ggml_backend_dev_t> devices;  // the devices that compute a part; the CPU is always the last
    std::vector<int> layers;                  // device index of each layer
    int64_t host_experts = 0;                 // number of first layers whose routed experts the CPU computes
    int embedding = 0, head = 0;              // device indices; a drafter is on the device of the head
    kernels::KernelChoice cpu_kernels = {};   // the implementation of each op on the CPU, decided at load

    int cpu() const { return static_cast<int>(devices.size()) - 1; }
    /// Returns whether ds4's CPU kernels compute what is on this device (a device index).
    bool uses_own_kernels(int device) const { return device == cpu() && cpu_kernels.own(); }
    /// The implementation of each op on this device; a session adds the device's own kernels.
    kernels::KernelChoice kernel_choice(int device) const {
        return device == cpu() ? cpu_kernels : kernels::KernelChoice();
    }
    bool experts_on_cpu(int64_t layer) const { return layer < host_experts || layers[layer] == cpu(); }
};

/// The options that decide the device map; fields of ds4::ModelOptions.
struct DeviceOptions {
    std::string device = "auto";
    std::vector<int64_t> split = {};
    int64_t cpu_moe = 0;
};

/// Returns a device map with everything on the CPU.
DeviceMap all_on_cpu(int64_t layers, bool own_kernels);

/// Maps layers to devices as the options say. The embedding goes with the first layer, the head with the last. Opens no
/// backend. Throws RequestError for unknown devices and for numbers that do not fit the model's layers, BackendError
/// for a remote device that does not answer.
DeviceMap make_device_map(const DeviceOptions& options, int64_t layers);

/// Returns the names of the devices that have layers, in order, separated by commas.
std::string device_names(const DeviceMap& device_map);

/// Describes a device map for people: the devices with the number of layers of each, and the experts that stay on the
/// CPU.
std::string describe(const DeviceMap& device_map);

}  // namespace ds4::weights
