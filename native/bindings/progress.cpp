#include "progress.h"

#include <pybind11/pybind11.h>

#include "running.h"

namespace py = pybind11;

namespace ds4::bindings {

LoadProgress load_progress(std::function<void(double)> progress) {
    return [progress = std::move(progress)](double fraction) {
        if (python_ends()) throw Cancelled();
        py::gil_scoped_acquire gil;
        if (PyErr_CheckSignals() != 0) throw py::error_already_set();
        if (progress) progress(fraction);
    };
}

}  // namespace ds4::bindings
