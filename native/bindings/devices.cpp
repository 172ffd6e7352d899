#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "backend/abort.h"
#include "backend/device.h"
#include "backend/rpc_device.h"
#include "module.h"

namespace py = pybind11;

namespace ds4::bindings {

void register_devices(py::module_& m) {
    m.def("exit_on_abort", &backend::exit_on_abort, py::arg("code"),
          "Where ggml gives up, such as on a device that is lost, the process ends with this exit code, not SIGABRT.");
    m.def(
        "serve_rpc",
        [](const std::string& endpoint, const std::string& device, int threads) {
            backend::serve_device(endpoint, backend::find_device(device), threads);
        },
        py::arg("endpoint"), py::arg("device") = "auto", py::arg("threads") = 1,
        py::call_guard<py::gil_scoped_release>(),
        "Serves a device of this machine at \"HOST:PORT\" by ggml's RPC protocol, one client at a time, without\n"
        "authentication. Does not return; raises BackendError when the address cannot be served at.");
}

}  // namespace ds4::bindings
