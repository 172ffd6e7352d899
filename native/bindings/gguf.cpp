#include "gguf/gguf.h"

#include <pybind11/stl.h>
#include <pybind11/stl/filesystem.h>

#include "ggml-cpp.h"
#include "gguf/tensors.h"
#include "model/hyperparameters.h"
#include "module.h"
#include "weights/weights.h"

namespace py = pybind11;

namespace ds4::bindings {

namespace {

using gguf::File;
using model::Hyperparameters;

/// Files are not obliged to hold valid UTF-8; what is not shows as \xNN.
py::str text(const std::string& bytes) {
    PyObject* decoded = PyUnicode_DecodeUTF8(bytes.data(), static_cast<Py_ssize_t>(bytes.size()), "backslashreplace");
    if (decoded == nullptr) throw py::error_already_set();
    return py::reinterpret_steal<py::str>(decoded);
}

py::str path_text(const std::string& path) {
    PyObject* decoded = PyUnicode_DecodeFSDefaultAndSize(path.data(), static_cast<Py_ssize_t>(path.size()));
    if (decoded == nullptr) throw py::error_already_set();
    return py::reinterpret_steal<py::str>(decoded);
}

struct ToPython {
    py::object operator()(const std::string& value) const { return text(value); }
    py::object operator()(bool value) const { return py::bool_(value); }
    py::object operator()(int64_t value) const { return py::int_(value); }
    py::object operator()(double value) const { return py::float_(value); }
    py::object operator()(const gguf::Array& array) const { return std::visit(*this, array); }
    template <typename T>
    py::object operator()(const std::vector<T>& items) const {
        py::list out(items.size());
        for (size_t i = 0; i < items.size(); ++i) out[i] = (*this)(items[i]);
        return out;
    }
};

py::dict metadata(const File& file) {
    py::dict out;
    for (const auto& [key, value] : file.metadata()) out[py::str(key)] = std::visit(ToPython{}, value);
    return out;
}

py::list paths(const File& file) {
    py::list out;
    for (const std::string& path : file.paths()) out.append(path_text(path));
    return out;
}

std::shared_ptr<File> open_file(const std::filesystem::path& path) {
    py::gil_scoped_release release;
    return std::const_pointer_cast<File>(File::open(path.string()));
}

py::tuple shape(const gguf::Tensor& tensor) {
    py::tuple out(static_cast<size_t>(tensor.n_dims));
    for (size_t i = 0; i < out.size(); ++i) out[i] = tensor.ne[i];
    return out;
}

py::tuple fields(const gguf::Tensor& tensor) {
    return py::make_tuple(tensor.name, gguf::type_name(tensor.type), shape(tensor), tensor.nbytes, tensor.shard);
}

void check_weights(const File& file, const Hyperparameters& hp) {
    py::gil_scoped_release release;
    const ggml_context_ptr ctx(ggml_init({weights::context_size(hp), nullptr, true}));
    weights::describe_weights(ctx.get(), file, hp);
}

void register_tensor(py::module_& m) {
    py::class_<gguf::Tensor>(m, "GgufTensor",
                             "What a GGUF file says of one tensor; unpacks in the order of its fields.")
        .def_readonly("name", &gguf::Tensor::name)
        .def_property_readonly(
            "type", [](const gguf::Tensor& self) { return gguf::type_name(self.type); }, "ggml's name, as in Q4_K.")
        .def_property_readonly("shape", &shape, "In ggml's order: the contiguous dimension first.")
        .def_readonly("nbytes", &gguf::Tensor::nbytes)
        .def_readonly("shard", &gguf::Tensor::shard, "Index of the file in GgufFile.paths.")
        .def_readonly("packed", &gguf::Tensor::packed,
                      "Matrices that lie packed for the CPU's kernels; 0: rows as ggml has them.")
        .def("__iter__", [](const gguf::Tensor& self) { return py::iter(fields(self)); })
        .def("__repr__", [](const gguf::Tensor& self) { return "GgufTensor" + std::string(py::repr(fields(self))); });
}

void register_file(py::module_& m) {
    py::class_<File, std::shared_ptr<File>>(m, "GgufFile", "A GGUF file, or all shards of a split one; validated.")
        .def_static("open", &open_file, py::arg("path"),
                    "Maps a file; any shard opens its set. Raises FormatError naming file, key or tensor.")
        .def_property_readonly("version", &File::version)
        .def_property_readonly("paths", &paths, "The shards in order.")
        .def_property_readonly("file_bytes", &File::file_bytes, "Size of all shards.")
        .def("metadata", &metadata, "A new dict of the metadata of the first shard, arrays as lists.")
        .def("tensors", [](const File& self) { return self.tensors(); }, "All tensors, in the order of the files.");
}

void register_hyperparameters(py::module_& m) {
    using H = Hyperparameters;
    py::class_<H>(m, "Hyperparameters", "The numbers that shape a DS4 target; read-only.")
        .def_readonly("layers", &H::layers)
        .def_readonly("hidden", &H::hidden)
        .def_readonly("vocab", &H::vocab)
        .def_readonly("context", &H::context)
        .def_readonly("heads", &H::heads)
        .def_readonly("head_size", &H::head_size)
        .def_readonly("rope_size", &H::rope_size)
        .def_readonly("query_rank", &H::query_rank)
        .def_readonly("output_groups", &H::output_groups)
        .def_readonly("output_rank", &H::output_rank)
        .def_readonly("window", &H::window)
        .def_readonly("ratios", &H::ratios)
        .def_readonly("rope_base", &H::rope_base)
        .def_readonly("compress_rope_base", &H::compress_rope_base)
        .def_readonly("yarn", &H::yarn)
        .def_readonly("yarn_factor", &H::yarn_factor)
        .def_readonly("yarn_beta_fast", &H::yarn_beta_fast)
        .def_readonly("yarn_beta_slow", &H::yarn_beta_slow)
        .def_readonly("yarn_original_context", &H::yarn_original_context)
        .def_readonly("index_heads", &H::index_heads)
        .def_readonly("index_size", &H::index_size)
        .def_readonly("index_top_k", &H::index_top_k)
        .def_readonly("experts", &H::experts)
        .def_readonly("experts_used", &H::experts_used)
        .def_readonly("shared_experts", &H::shared_experts)
        .def_readonly("hash_layers", &H::hash_layers)
        .def_readonly("expert_widths", &H::expert_widths)
        .def_readonly("normalise_weights", &H::normalise_weights)
        .def_readonly("routed_scale", &H::routed_scale)
        .def_readonly("clamp_routed", &H::clamp_routed)
        .def_readonly("clamp_shared", &H::clamp_shared)
        .def_readonly("streams", &H::streams)
        .def_readonly("sinkhorn_iterations", &H::sinkhorn_iterations)
        .def_readonly("hc_epsilon", &H::hc_epsilon)
        .def_readonly("norm_epsilon", &H::norm_epsilon);
}

}  // namespace

void register_gguf(py::module_& m) {
    register_tensor(m);
    register_file(m);
    register_hyperparameters(m);
    m.def(
        "read_hyperparameters",
        [](const File& file) {
            py::gil_scoped_release release;
            return model::read_hyperparameters(file);
        },
        py::arg("file"), "Raises FormatError where the file is not a DS4 target, saying what it is.");
    m.def("check_weights", &check_weights, py::arg("file"), py::arg("hyperparameters"),
          "Raises FormatError for the first tensor that is missing or has the wrong shape, type or ids.");
}

}  // namespace ds4::bindings
