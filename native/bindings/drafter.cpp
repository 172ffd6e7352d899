#include "ds4/drafter.h"

#include <pybind11/functional.h>
#include <pybind11/stl.h>

#include "drafter/description.h"
#include "module.h"
#include "progress.h"

namespace py = pybind11;

namespace ds4::bindings {
namespace {

using drafter::Hyperparameters;

std::string contract(const Hyperparameters& hp) { return drafter::contract_name(hp.contract); }

Hyperparameters read(const gguf::File& file, const std::optional<model::Hyperparameters>& target) {
    py::gil_scoped_release release;
    return drafter::describe(file, target ? &*target : nullptr).hp;
}

std::shared_ptr<Drafter> load(const std::string& path, const Model& target,
                              const std::function<void(double)>& progress) {
    const LoadProgress report = load_progress(progress);
    py::gil_scoped_release release;
    return std::const_pointer_cast<Drafter>(Drafter::load(path, target, report));
}

void register_hyperparameters(py::module_& m) {
    using H = Hyperparameters;
    py::class_<H>(m, "DrafterHyperparameters", "The numbers that shape a DSpark drafter; read-only.")
        .def_property_readonly("contract", &contract,
                               "How the file is stored: dflash, lucebox, ds4, dspark-only or relayout.")
        .def_readonly("block", &H::block, "Proposals of one draft.")
        .def_readonly("from_anchor", &H::from_anchor, "Whether the anchor's own row predicts.")
        .def_readonly("noise", &H::noise, "Id that fills the block after the anchor.")
        .def_readonly("taps", &H::taps, "Target layers, counted from 0, whose output it reads.")
        .def_readonly("rank", &H::rank, "Of the Markov head; 0 is none.")
        .def_readonly("confidence", &H::confidence, "Whether it has a confidence head.")
        .def_readonly("confidence_markov", &H::confidence_markov,
                      "Whether that also reads the previous token's Markov row.")
        .def_readonly("stages", &H::stages, "The draft stages as layers.");
}

}  // namespace

void register_drafter(py::module_& m) {
    using D = Drafter;
    register_hyperparameters(m);
    m.def("read_drafter", &read, py::arg("file"), py::arg("target") = std::nullopt,
          "Checks a drafter's file without loading it. Raises FormatError, or PairError with everything that does not\n"
          "fit the target; without a target, numbers that the file leaves to it are 0.");
    py::class_<D, std::shared_ptr<D>>(m, "Drafter", "A loaded DSpark drafter, checked against its target.",
                                      py::release_gil_before_calling_cpp_dtor())
        .def_static("load", &load, py::arg("path"), py::arg("target"), py::kw_only(), py::arg("progress") = nullptr,
                    "Maps and checks a drafter and puts its weights on the target's device. Raises FormatError, or\n"
                    "PairError with everything that does not fit. progress(fraction) may be None.")
        .def_property_readonly("file", &D::file, py::return_value_policy::reference_internal)
        .def_property_readonly("fingerprint", &D::fingerprint)
        .def_property_readonly("bytes", &D::bytes, "Size of the weights in memory.")
        .def_property_readonly("hyperparameters", &D::hyperparameters)
        .def_property_readonly("contract", [](const D& self) { return contract(self.hyperparameters()); })
        .def_property_readonly("stages", [](const D& self) { return self.hyperparameters().stages.layers; })
        .def_property_readonly("block", [](const D& self) { return self.hyperparameters().block; })
        .def_property_readonly("rank", [](const D& self) { return self.hyperparameters().rank; })
        .def_property_readonly("taps", [](const D& self) { return self.hyperparameters().taps; })
        .def_property_readonly("noise", [](const D& self) { return self.hyperparameters().noise; })
        .def_property_readonly("confidence", [](const D& self) { return self.hyperparameters().confidence; });
}

}  // namespace ds4::bindings
