#pragma once
// Which device computes what of a model.

#include <cstdint>
#include <string>
#include <vector>

#include "ggml-backend.h"

namespace ds4::model {

/// A place is an index of `devices`. State and weights of a part lie where it is computed.
struct Places {
    std::vector<ggml_backend_dev_t> devices;  // those that compute; the CPU is the last, whatever it does
    std::vector<int> layers;                  // the place of each layer
    int64_t host_experts = 0;                 // routed experts of so many first layers are the CPU's
    int embedding = 0, head = 0;              // the head's is a drafter's, too
    bool own_kernels = false;                 // whether the CPU computes its parts by kernels of its own

    int host() const { return static_cast<int>(devices.size()) - 1; }
    bool own(int place) const { return own_kernels && place == host(); }
    bool host_computes_experts(int64_t layer) const { return layer < host_experts || layers[layer] == host(); }
};

/// What is asked for; see ModelOptions.
struct PlacesWanted {
    std::string device = "auto";
    std::vector<int64_t> split = {};
    int64_t cpu_moe = 0;
};
/// Routed experts of every layer.
constexpr int64_t kEveryLayer = -1;

/// Everything on the CPU.
Places on_host(int64_t layers, bool own_kernels);

/// Devices and layers as wanted; the embedding goes with the first layer, the head with the last. Opens no backend.
/// Throws RequestError for devices that are not here, or numbers that do not fit the model's layers, BackendError for a
/// remote device that does not answer.
Places find_places(const PlacesWanted& wanted, int64_t layers);

/// The devices that have layers, in order, with commas.
std::string device_names(const Places& places);

/// The devices that have layers, with their numbers where there are several; and experts on the CPU.
std::string in_words(const Places& places);

}  // namespace ds4::model
