#include "ds4/errors.h"

#include "module.h"

namespace py = pybind11;

namespace ds4::bindings {

void register_errors(py::module_& m) {
    // Translators run newest first, so the base is registered before its children.
    auto base = py::register_exception<Error>(m, "Error");
    py::register_exception<FormatError>(m, "FormatError", base);
    py::register_exception<PairError>(m, "PairError", base);
    py::register_exception<RequestError>(m, "RequestError", base);
    py::register_exception<BackendError>(m, "BackendError", base);
    py::register_exception<Cancelled>(m, "Cancelled", base);
}

}  // namespace ds4::bindings
