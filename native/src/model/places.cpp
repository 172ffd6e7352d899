#include "model/places.h"

#include <algorithm>
#include <numeric>

#include "ds4/errors.h"
#include "model/device.h"

namespace ds4::model {
namespace {

std::vector<std::string> parts_of(const std::string& list) {
    std::vector<std::string> parts;
    for (size_t at = 0; at <= list.size();) {
        const size_t comma = std::min(list.find(',', at), list.size());
        parts.push_back(list.substr(at, comma - at));
        at = comma + 1;
    }
    return parts;
}

/// Devices in the order that layers go to them. "auto" for several parts is all GPUs.
std::vector<ggml_backend_dev_t> devices_wanted(const PlacesWanted& wanted) {
    if (wanted.split.size() > 1 && is_automatic(wanted.device)) return all_gpus();
    std::vector<ggml_backend_dev_t> devices;
    for (const std::string& name : parts_of(wanted.device)) {
        ggml_backend_dev_t device = find_device(name);
        if (std::ranges::find(devices, device) != devices.end()) {
            throw RequestError("device '" + name + "' is named twice in '" + wanted.device + "'");
        }
        devices.push_back(device);
    }
    return devices;
}

std::string in_words(const std::vector<int64_t>& numbers) {
    std::string text;
    for (int64_t n : numbers) text += (text.empty() ? "" : ",") + std::to_string(n);
    return text;
}

/// Layers of each device: as wanted, or in equal parts.
std::vector<int64_t> counts(const PlacesWanted& wanted, size_t devices, int64_t layers) {
    std::vector<int64_t> split = wanted.split;
    const auto parts = static_cast<int64_t>(devices);
    for (int64_t i = 0; split.size() < devices && wanted.split.empty(); i++) {
        split.push_back(layers * (i + 1) / parts - layers * i / parts);
    }
    const std::string given = "the split " + in_words(split);
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

std::string layers_in_words(int64_t count) { return std::to_string(count) + (count == 1 ? " layer" : " layers"); }

int64_t host_experts(int64_t wanted, int64_t layers) {
    if (wanted == kEveryLayer) return layers;
    if (wanted >= 0 && wanted <= layers) return wanted;
    throw RequestError("experts of " + std::to_string(wanted) + " layers are to stay on the CPU, wanted 0 to " +
                       std::to_string(layers) + ", the model's layers");
}

}  // namespace

Places on_host(int64_t layers, bool own_kernels) {
    return {{cpu_device()}, std::vector<int>(layers, 0), 0, 0, 0, own_kernels};
}

Places find_places(const PlacesWanted& wanted, int64_t layers) {
    const std::vector<ggml_backend_dev_t> devices = devices_wanted(wanted);
    const std::vector<int64_t> split = counts(wanted, devices.size(), layers);
    Places places;
    std::ranges::copy_if(devices, std::back_inserter(places.devices), [](auto d) { return d != cpu_device(); });
    places.devices.push_back(cpu_device());
    for (size_t i = 0; i < devices.size(); i++) {
        const auto place = std::ranges::find(places.devices, devices[i]) - places.devices.begin();
        places.layers.insert(places.layers.end(), split[i], static_cast<int>(place));
    }
    places.host_experts = host_experts(wanted.cpu_moe, layers);
    places.embedding = places.layers.front();
    places.head = places.layers.back();
    return places;
}

namespace {

/// Calls visit(place, layers) for each run of layers at one place.
template <typename F>
void each_run(const Places& places, F visit) {
    const auto& layers = places.layers;
    for (auto at = layers.begin(); at != layers.end();) {
        const auto end = std::find_if(at, layers.end(), [&](int place) { return place != *at; });
        visit(*at, end - at);
        at = end;
    }
}

}  // namespace

std::string device_names(const Places& places) {
    std::string text;
    each_run(places, [&](int place, int64_t) { text += (text.empty() ? "" : ",") + name_of(places.devices[place]); });
    return text;
}

std::string in_words(const Places& places) {
    std::string text;
    const int64_t all = std::ssize(places.layers);
    each_run(places, [&](int place, int64_t layers) {
        text += (text.empty() ? "" : ", ") + name_of(places.devices[place]);
        if (layers < all) text += " (" + layers_in_words(layers) + ")";
    });
    const bool elsewhere = std::ranges::any_of(places.layers, [&](int place) { return place != places.host(); });
    if (places.host_experts == 0 || !elsewhere) return text;
    return text + ", routed experts of " + layers_in_words(places.host_experts) + " on the CPU";
}

}  // namespace ds4::model
