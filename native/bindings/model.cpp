#include <pybind11/functional.h>
#include <pybind11/stl.h>

#include "ds4/memory.h"
#include "gguf/gguf.h"
#include "machine/topology.h"
#include "model/hyperparameters.h"
#include "module.h"
#include "progress.h"

namespace py = pybind11;

namespace ds4::bindings {
namespace {

std::shared_ptr<Model> load(const std::string& path, const std::string& device, std::vector<int64_t> split,
                            int64_t cpu_moe, std::optional<int> threads, bool repack, size_t reserve,
                            const std::function<void(double)>& progress) {
    const LoadProgress report = load_progress(progress);
    py::gil_scoped_release release;
    return std::const_pointer_cast<Model>(
        Model::load(path, {device, std::move(split), cpu_moe, threads, repack, reserve}, report));
}

std::vector<py::dict> memory(const gguf::File& target, const gguf::File* drafter, int64_t context,
                             const std::string& kv_dtype, const std::string& device, std::vector<int64_t> split,
                             int64_t cpu_moe, bool repack) {
    ModelOptions options;
    options.device = device;
    options.split = std::move(split);
    options.cpu_moe = cpu_moe;
    options.repack = repack;
    const ggml_type type = kv_type(kv_dtype);
    const std::vector<DeviceMemory> devices = [&] {
        py::gil_scoped_release release;
        return memory_by_device(target, drafter, options, context, type);
    }();
    std::vector<py::dict> out;
    for (const DeviceMemory& found : devices) {
        py::dict& one = out.emplace_back();
        one["device"] = found.device;
        one["host"] = found.host;
        one["weights"] = found.weights;
        one["experts"] = found.experts;
        one["packed"] = found.packed;
        one["state"] = found.state;
        one["scratch"] = found.scratch;
        one["drafter"] = found.drafter;
        one["available"] = found.available;
    }
    return out;
}

}  // namespace

ggml_type kv_type(const std::string& name) {
    if (name == "f16") return GGML_TYPE_F16;
    if (name == "f32") return GGML_TYPE_F32;
    throw RequestError("kv_dtype is '" + name + "', wanted 'f16' or 'f32'");
}

void register_model(py::module_& m) {
    py::class_<Model, std::shared_ptr<Model>>(m, "Model", "A loaded target; shared by its sessions.",
                                              py::release_gil_before_calling_cpp_dtor())
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
    m.def(
        "memory_by_device", &memory, py::arg("target"), py::arg("drafter") = nullptr, py::kw_only(), py::arg("context"),
        py::arg("kv_dtype") = "f16", py::arg("device") = "auto", py::arg("split") = std::vector<int64_t>(),
        py::arg("cpu_moe") = 0, py::arg("repack") = true,
        "Bytes of each device that Model.load, Drafter.load (None: no drafter) and a session would take, by part, and\n"
        "what is available there: {device, host, weights, experts, packed, state, scratch, drafter, available}.");
    m.def(
        "default_threads", [] { return machine::default_threads(machine::read_topology(machine::allowed_cpus())); },
        "Cores that affinity and the control groups' quota leave to this process; at least 1.");
    m.def("load_backends", &load_backends, py::arg("directory"), "Loads ggml's backend libraries from a directory.");
}

}  // namespace ds4::bindings
