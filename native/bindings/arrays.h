#pragma once
// Views of NumPy arrays. They never copy: a silent conversion of 129,280 logits would take longer than sampling.

#include <pybind11/numpy.h>

#include <cstddef>
#include <span>
#include <string>

#include "ds4/errors.h"

namespace ds4::bindings {

/// Returns a view of a C-contiguous array of type T with `dimensions` dimensions. Throws RequestError, which begins
/// with `what` (a plural noun), for any other array.
template <typename T>
std::span<const T> view_of(const pybind11::array& array, int dimensions, const char* what) {
    using pybind11::dtype;
    const bool typed = dtype::of<T>().is(array.dtype());
    if (typed && array.ndim() == dimensions && (array.flags() & pybind11::array::c_style)) {
        return {static_cast<const T*>(array.data()), static_cast<size_t>(array.size())};
    }
    throw RequestError(std::string(what) + " are a " + std::to_string(array.ndim()) + "-dimensional array of " +
                       std::string(pybind11::str(array.dtype())) + ", wanted " + std::to_string(dimensions) +
                       " contiguous of " + std::string(pybind11::str(dtype::of<T>())) +
                       "; convert with numpy.ascontiguousarray");
}

}  // namespace ds4::bindings
