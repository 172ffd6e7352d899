#include <pybind11/functional.h>
#include <pybind11/stl.h>

#include "ds4/memory.h"
#include "gguf/gguf.h"
#include "machine/topology.h"
#include "model/hyperparameters.h"
#include "module.h"
#include "progress.h"
#include "running.h"

namespace py = pybind11;

namespace ds4::bindings {
namespace {

std::shared_ptr<Model> load(const std::string& path, const std::string& device, std::vector<int64_t> split,
                            int64_t cpu_moe, std::optional<int> threads, bool repack, size_t reserve,
                            const std::function<void(double)>& progress) {
    const LoadProgress report = load_progress(progress);
    std::shared_ptr<const Model> model;
    run([&] { model = Model::load(path, {device, std::move(split), cpu_moe, threads, repack, reserve}, report); });
    return released_unlocked(std::move(model));
}

std::vector<DeviceMemory> memory(const gguf::File& target, const gguf::File* drafter, int64_t context,
                                 const std::string& kv_dtype, const std::string& device, std::vector<int64_t> split,
                                 int64_t cpu_moe, bool repack) {
    ModelOptions options;
    options.device = device;
    options.split = std::move(split);
    options.cpu_moe = cpu_moe;
    options.repack = repack;
    const ggml_type type = kv_type(kv_dtype);
    std::vector<DeviceMemory> devices;
    run([&] { devices = memory_by_device(target, drafter, options, context, type); });
    return devices;
}

void register_memory(py::module_& m) {
    using M = DeviceMemory;
    py::class_<M>(m, "DeviceMemory", "Bytes that a target, its drafter and a session need on one device.")
        .def_readonly("device", &M::device, "Name of the device.")
        .def_readonly("host", &M::host, "Whether it is the CPU, which uses weights from the file's mapping.")
        .def_readonly("weights", &M::weights, "Weights of the target without its routed experts.")
        .def_readonly("experts", &M::experts, "Routed experts of the target.")
        .def_readonly("packed", &M::packed, "Copies of weights for the CPU's own kernels.")
        .def_readonly("state", &M::state, "Keys and rings of one session.")
        .def_readonly("scratch", &M::scratch, "Memory in which the graphs of a session run.")
        .def_readonly("drafter", &M::drafter, "Weights of the drafter.")
        .def_readonly("available", &M::available, "Bytes available now.");
    m.def("memory_by_device", &memory, py::arg("target"), py::arg("drafter") = nullptr, py::kw_only(),
          py::arg("context"), py::arg("kv_dtype") = "f16", py::arg("device") = "auto",
          py::arg("split") = std::vector<int64_t>(), py::arg("cpu_moe") = 0, py::arg("repack") = true,
          "What Model.load, Drafter.load (None: no drafter) and a session would need on each device. Raises what they\n"
          "raise for files, devices and numbers.");
}

}  // namespace

ggml_type kv_type(const std::string& name) {
    if (name == "f16") return GGML_TYPE_F16;
    if (name == "f32") return GGML_TYPE_F32;
    throw RequestError("kv_dtype is '" + name + "', wanted 'f16' or 'f32'");
}

void register_model(py::module_& m) {
    py::class_<Model, std::shared_ptr<Model>>(m, "Model", "A loaded target; shared by its sessions.")
        .def_static(
            "load", &load, py::arg("path"), py::kw_only(), py::arg("device") = "auto",
            py::arg("split") = std::vector<int64_t>(), py::arg("cpu_moe") = 0, py::arg("threads") = py::none(),
            py::arg("repack") = true, py::arg("reserve") = 0, py::arg("progress") = nullptr,
            "Maps and checks a target and puts its weights in place: layers over the devices, which commas\n"
            "part, as `split` says; routed experts of the first `cpu_moe` layers on the CPU, -1 for all.\n"
            "Weights are only repacked where `reserve` bytes of memory are left. progress(fraction) may be None.")
        .def_property_readonly("file", &Model::file, py::return_value_policy::reference_internal)
        .def_property_readonly("device", &Model::device_name)
        .def_property_readonly("device_map", &Model::describe_device_map,
                               "The devices with how many layers each has, and what stays on the CPU, for people.")
        .def_property_readonly("threads", &Model::threads)
        .def_property_readonly(
            "nodes", [](const Model& model) { return model.topology().nodes.size(); },
            "NUMA nodes with processors that this process may use.")
        .def_property_readonly("spread_over_nodes", &Model::spread_over_nodes)
        .def_property_readonly("packed_bytes", &Model::packed_bytes)
        .def_property_readonly("fingerprint", &Model::fingerprint)
        .def_property_readonly("hyperparameters", &Model::hyperparameters, py::return_value_policy::copy,
                               "A copy, which does not keep the model in memory.");
    register_memory(m);
    m.def(
        "default_threads", [] { return machine::default_threads(machine::read_topology(machine::allowed_cpus())); },
        "Cores that affinity and the control groups' quota leave to this process; at least 1.");
    m.def("load_backends", &load_backends, py::arg("directory"), "Loads ggml's backend libraries from a directory.");
}

}  // namespace ds4::bindings
