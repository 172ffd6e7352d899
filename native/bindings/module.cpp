#include "module.h"

#include "ds4/limits.h"
#include "model/hyperparameters.h"

PYBIND11_MODULE(_native, m) {
    using namespace ds4::bindings;
    m.doc() = "The native core of ds4py.";
    m.def("commit", [] { return DS4_COMMIT; }, "The commit it was built from, or \"unknown\".");
    m.attr("MAX_ROWS") = ds4::kMaxRows;
    m.attr("DEFAULT_CONTEXT") = ds4::kDefaultContext;
    m.attr("CSA_RATIO") = ds4::model::kCsaRatio;
    m.attr("HCA_RATIO") = ds4::model::kHcaRatio;
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
