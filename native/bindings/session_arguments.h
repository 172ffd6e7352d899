#pragma once
// Arguments and results that the bindings of a session share.

#include <pybind11/functional.h>
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "ds4/session.h"
#include "running.h"

namespace ds4::bindings {

using Tokens = pybind11::array_t<int32_t, pybind11::array::c_style | pybind11::array::forcecast>;
using Progress = std::function<void(int64_t, int64_t)>;
using SessionClass = pybind11::class_<Session, std::unique_ptr<Session, DeleteUnlocked>>;

/// Returns a progress function that calls `progress` with the GIL, from a call that runs without it.
inline StepProgress stepping(const Progress& progress) {
    if (!progress) return {};
    return [&progress](int64_t done, int64_t total) {
        pybind11::gil_scoped_acquire gil;
        progress(done, total);
    };
}

/// Returns a view of the ids in a flat array. Throws RequestError for another number of dimensions.
inline std::span<const int32_t> view(const Tokens& tokens) {
    if (tokens.ndim() != 1) {
        throw RequestError("tokens have " + std::to_string(tokens.ndim()) +
                           " dimensions, wanted a flat sequence of ids");
    }
    return {tokens.data(), static_cast<size_t>(tokens.size())};
}

/// Returns a copy of `data` as an array with `rows` rows; None if `data` is empty.
template <typename T>
pybind11::object table(const std::vector<T>& data, size_t rows) {
    if (data.empty()) return pybind11::none();
    pybind11::array_t<T> out({rows, data.size() / rows});
    std::ranges::copy(data, out.mutable_data());
    return out;
}

/// Returns a copy of `data` as a flat array; None if `data` is empty.
template <typename T>
pybind11::object column(const std::vector<T>& data) {
    if (data.empty()) return pybind11::none();
    return pybind11::array_t<T>(static_cast<pybind11::ssize_t>(data.size()), data.data());
}

/// Register the type of a draft, and the calls of a speculative cycle (speculative.cpp).
void register_draft_block(pybind11::module_& m);
void add_speculative_calls(SessionClass& session);

}  // namespace ds4::bindings
