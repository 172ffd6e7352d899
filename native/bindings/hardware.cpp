#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "backend/device_list.h"
#include "cpu/kernels.h"
#include "machine/memory.h"
#include "module.h"

namespace py = pybind11;

namespace ds4::bindings {
namespace {

py::dict as_dict(const backend::DeviceFacts& device) {
    py::dict facts;
    facts["name"] = device.name;
    facts["description"] = device.description;
    facts["kind"] = device.kind;
    facts["id"] = device.id;
    facts["memory_free"] = device.memory_free;
    facts["memory_total"] = device.memory_total;
    facts["addresses_host_memory"] = device.addresses_host_memory;
    return facts;
}

py::dict as_dict(const backend::BackendFacts& backend) {
    py::dict features, facts;
    for (const auto& [name, value] : backend.features) features[py::str(name)] = value;
    py::list devices;
    for (const backend::DeviceFacts& device : backend.devices) devices.append(as_dict(device));
    facts["name"] = backend.name;
    facts["features"] = features;
    facts["devices"] = devices;
    return facts;
}

}  // namespace

void register_hardware(py::module_& m) {
    m.def(
        "backends",
        [] {
            py::list list;
            for (const backend::BackendFacts& backend : backend::backends()) list.append(as_dict(backend));
            return list;
        },
        "What ggml offers in this build: backends with their name, features and devices; bytes of memory.");
    m.def(
        "cpu_kernels",
        [] {
            std::vector<std::string> names;
            for (const kernels::Kernels* each : kernels::available()) names.emplace_back(each->name);
            return names;
        },
        "The CPU kernels that this processor runs, the best first, which is the one that computes.");
    m.def(
        "available_memory", [](const std::string& root) { return machine::available_memory(root); },
        py::arg("root") = "/",
        "Bytes that can be taken, as far as the system and the control groups say. `root` stands before /proc and "
        "/sys.");
}

}  // namespace ds4::bindings
