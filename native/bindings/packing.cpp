#include "weights/packing.h"

#include <pybind11/numpy.h>
#include <pybind11/stl.h>

#include "arrays.h"
#include "cpu/layout.h"
#include "cpu/packing.h"
#include "drafter/description.h"
#include "module.h"

namespace py = pybind11;

namespace ds4::bindings {

namespace {

/// The packed form of one tensor.
struct Packing {
    std::string name;
    int type;
    int64_t count;
    size_t bytes;
};

std::vector<Packing> list(const gguf::File& file, const std::vector<weights::Packable>& packable) {
    weights::require_same_packing(file, packable);
    std::vector<Packing> out;
    for (const weights::Packable& each : packable) {
        const auto shape = weights::packed_shape(each);
        if (shape) out.push_back({each.tensor->name, each.tensor->type, shape->count, shape->bytes});
    }
    return out;
}

std::vector<Packing> target_packing(const gguf::File& file) {
    const model::Hyperparameters hp = model::read_hyperparameters(file);
    const ggml_context_ptr ctx(ggml_init({weights::context_size(hp), nullptr, true}));
    weights::Weights weights = weights::describe_weights(ctx.get(), file, hp);
    weights.device_map = weights::all_on_cpu(hp.layers, true);
    return list(file, weights::packable(weights, hp));
}

std::vector<Packing> drafter_packing(const gguf::File& file) {
    const drafter::Description found = drafter::describe(file, nullptr);
    return list(file, drafter::packable(found.weights, found.hp.stages));
}

std::vector<Packing> packing(const gguf::File& file, bool drafter) {
    py::gil_scoped_release release;
    return drafter ? drafter_packing(file) : target_packing(file);
}

py::array_t<uint8_t> pack_rows(const py::array& rows, int type, int packed, int64_t columns) {
    const auto bytes = view_of<uint8_t>(rows, 1, "pack_rows: rows");
    const bool known = type >= 0 && type < GGML_TYPE_COUNT && packed >= 0 && packed < GGML_TYPE_COUNT && columns > 0 &&
                       ggml_blck_size(static_cast<ggml_type>(type)) > 0;
    const auto from = static_cast<ggml_type>(type), to = static_cast<ggml_type>(packed);
    const bool widens = to == GGML_TYPE_F32 && known && ggml_get_type_traits(from)->to_float != nullptr;
    if (!known || (from != to && !widens) || columns % ggml_blck_size(from) ||
        !kernels::packed_shape(to, columns, 1, 1) || bytes.size() % ggml_row_size(from, columns)) {
        throw RequestError("pack_rows: " + std::to_string(bytes.size()) + " bytes of type " + std::to_string(type) +
                           " are no rows of " + std::to_string(columns) + " that are packed as type " +
                           std::to_string(packed));
    }
    const auto count = static_cast<int64_t>(bytes.size() / ggml_row_size(from, columns));
    py::array_t<uint8_t> out(static_cast<py::ssize_t>(kernels::packed_shape(to, columns, count, 1)->bytes));
    void* data = out.mutable_data();
    py::gil_scoped_release release;
    weights::pack_rows(from, bytes.data(), count, columns, to, data);
    return out;
}

}  // namespace

void register_packing(py::module_& m) {
    py::class_<Packing>(m, "Packing", "How a tensor lies in a packed file.")
        .def_readonly("name", &Packing::name)
        .def_readonly("type", &Packing::type, "ggml's id of the type that its tiles are of.")
        .def_readonly("count", &Packing::count, "Matrices that it holds, which are packed apart.")
        .def_readonly("bytes", &Packing::bytes, "Of one packed matrix.");
    m.attr("PACKED_LAYOUT") = kernels::kLayoutVersion;
    m.attr("PACKED_TILE") = kernels::kTile;
    m.def(
        "packing", &packing, py::arg("file"), py::kw_only(), py::arg("drafter"),
        "The tensors that are packed for the CPU's kernels, of a target or of a drafter; their values are not looked\n"
        "at. Raises FormatError where the file is not sound, or packed otherwise.");
    m.def(
        "pack_rows", &pack_rows, py::arg("rows"), py::arg("type"), py::arg("packed"), py::arg("columns"),
        "Bytes of the tiles (16 rows each, the last one filled with zeros) of rows of a type, packed as the same type\n"
        "or as F32; rows are uint8, types ggml's ids.");
}

}  // namespace ds4::bindings
