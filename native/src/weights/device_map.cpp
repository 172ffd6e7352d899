#include "weights/device_map.h"

#include <algorithm>
#include <numeric>

#include "backend/device.h"
#include "ds4/errors.h"
#include "ds4/model.h"

namespace ds4::weights {
namespace {

std::vector<std::string> split_at_commas(const std::string& list) {
    std::vector<std::string> parts;
    for (size_t at = 0; at <= list.size();) {
        const size_t comma = std::min(list.find(',', at), list.size());
        parts.push_back(list.substr(at, comma - at));
        at = comma + 1;
    }
    return parts;
}

/// Returns the devices in the order that layers go to them. "auto" with a split means all GPUs.
std::vector<ggml_backend_dev_t> chosen_devices(const DeviceOptions& options) {
    if (options.split.size() > 1 && backend::is_auto(options.device)) return backend::all_gpus();
    std::vector<ggml_backend_dev_t> devices;
    for (const std::string& name : split_at_commas(options.device)) {
        ggml_backend_dev_t device = backend::find_device(name);
        if (std::ranges::find(devices, device) != devices.end()) {
            throw RequestError("device '" + name + "' is named twice in '" + options.device + "'");
        }
        devices.push_back(device);
    }
    return devices;
}

std::string comma_separated(const std::vector<int64_t>& numbers) {
    std::string text;
    for (int64_t n : numbers) text += (text.empty() ? "" : ",") + std::to_string(n);
    return text;
}

/// Returns the number of layers of each device: the split, or equal parts when there is none.
std::vector<int64_t> layers_by_device(const DeviceOptions& options, size_t devices, int64_t layers) {
    std::vector<int64_t> split = options.split;
    const auto parts = static_cast<int64_t>(devices);
    for (int64_t i = 0; split.size() < devices && options.split.empty(); i++) {
        split.push_back(layers * (i + 1) / parts - layers * i / parts);
    }
    const std::string given = "the split " + comma_separated(split);
    if (split.size() != devices) {
        throw RequestError(given + " has " + std::to_string(split.size()) + " parts for " + std::to_string(devices) +
                           (devices == 1 ? " device" : " devices") + ": give as many devices as parts, as in a,b");
    }
    const int64_t sum = std::accumulate(split.begin(), split.end(), int64_t{0});
    if (sum != layers || std::ranges::any_of(split, [](int64_t n) { return n < 1; })) {
        throw RequestError(given + " has " + std::to_string(sum) + " layers, wanted parts of at least 1 that sum to " +
                           "the model's " + std::to_string(layers));
    }
    return split;
}

std::string layer_count(int64_t count) { return std::to_string(count) + (count == 1 ? " layer" : " layers"); }

int64_t host_experts(int64_t cpu_moe, int64_t layers) {
    if (cpu_moe == kEveryLayer) return layers;
    if (cpu_moe >= 0 && cpu_moe <= layers) return cpu_moe;
    throw RequestError("experts of " + std::to_string(cpu_moe) + " layers are to stay on the CPU, wanted 0 to " +
                       std::to_string(layers) + ", the model's layers");
}

}  // namespace

DeviceMap all_on_cpu(int64_t layers, bool own_kernels) {
    return {{backend::cpu_device()}, std::vector<int>(layers, 0), 0, 0, 0, kernels::KernelChoice::of_cpu(own_kernels)};
}

DeviceMap make_device_map(const DeviceOptions& options, int64_t layers) {
    const std::vector<ggml_backend_dev_t> devices = chosen_devices(options);
    const std::vector<int64_t> split = layers_by_device(options, devices.size(), layers);
    DeviceMap device_map;
    std::ranges::copy_if(devices, std::back_inserter(device_map.devices),
                         [](auto d) { return d != backend::cpu_device(); });
    device_map.devices.push_back(backend::cpu_device());
    for (size_t i = 0; i < devices.size(); i++) {
        const auto index = std::ranges::find(device_map.devices, devices[i]) - device_map.devices.begin();
        device_map.layers.insert(device_map.layers.end(), split[i], static_cast<int>(index));
    }
    device_map.host_experts = host_experts(options.cpu_moe, layers);
    device_map.embedding = device_map.layers.front();
    device_map.head = device_map.layers.back();
    return device_map;
}

namespace {

/// Calls visit(device index, number of layers) for each run of consecutive layers on one device.
template <typename F>
void each_run(const DeviceMap& device_map, F visit) {
    const auto& layers = device_map.layers;
    for (auto at = layers.begin(); at != layers.end();) {
        const auto end = std::find_if(at, layers.end(), [&](int device) { return device != *at; });
        visit(*at, end - at);
        at = end;
    }
}

}  // namespace

std::string device_names(const DeviceMap& device_map) {
    std::string text;
    each_run(device_map, [&](int device, int64_t) {
        text += (text.empty() ? "" : ",") + backend::name_of(device_map.devices[device]);
    });
    return text;
}

std::string describe(const DeviceMap& device_map) {
    std::string text;
    const int64_t all = std::ssize(device_map.layers);
    each_run(device_map, [&](int device, int64_t layers) {
        text += (text.empty() ? "" : ", ") + backend::name_of(device_map.devices[device]);
        if (layers < all) text += " (" + layer_count(layers) + ")";
    });
    const bool elsewhere =
        std::ranges::any_of(device_map.layers, [&](int device) { return device != device_map.cpu(); });
    if (device_map.host_experts == 0 || !elsewhere) return text;
    return text + ", routed experts of " + layer_count(device_map.host_experts) + " on the CPU";
}

}  // namespace ds4::weights
