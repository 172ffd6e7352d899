#pragma once
// The functions that register the parts of the module, each in a file of its own.

#include <pybind11/pybind11.h>

#include <string>

#include "ggml.h"

namespace ds4::bindings {

void register_devices(pybind11::module_& m);
void register_errors(pybind11::module_& m);
void register_formats(pybind11::module_& m);
void register_gguf(pybind11::module_& m);
void register_packing(pybind11::module_& m);
void register_sampling(pybind11::module_& m);
void register_acceptance(pybind11::module_& m);

void register_hardware(pybind11::module_& m);
void register_model(pybind11::module_& m);
void register_drafter(pybind11::module_& m);
void register_session(pybind11::module_& m);
void register_diagnostics(pybind11::module_& m);

/// Returns the type with the name "f16" or "f32". Throws RequestError for any other name.
ggml_type kv_type(const std::string& name);

}  // namespace ds4::bindings
