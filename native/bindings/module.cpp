#include "module.h"

PYBIND11_MODULE(_native, m) {
    using namespace ds4::bindings;
    m.doc() = "The native core of ds4py.";
    m.def("commit", [] { return DS4_COMMIT; }, "The commit it was built from, or \"unknown\".");
    register_errors(m);
    register_formats(m);
    register_gguf(m);
    register_packing(m);
    register_sampling(m);
    register_acceptance(m);
    register_hardware(m);
    register_model(m);
    register_drafter(m);
    register_session(m);
    register_devices(m);
}
