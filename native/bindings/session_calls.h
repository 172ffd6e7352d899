#pragma once
// What the bindings of a session share: calls without the interpreter's lock, and arrays from and to its numbers.

#include <pybind11/functional.h>
#include <pybind11/numpy.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <span>
#include <vector>

#include "ds4/session.h"
#include "running.h"

namespace ds4::bindings {

using Tokens = pybind11::array_t<int32_t, pybind11::array::c_style | pybind11::array::forcecast>;
using Progress = std::function<void(int64_t, int64_t)>;

/// Runs `call` without the interpreter's lock; Ctrl-C stops it at once.
template <typename F>
void run(F call) {
    try {
        RunningCall running;
        const pybind11::gil_scoped_release release;
        try {
            call();
        } catch (...) {
            running.done();
            throw;
        }
        running.done();
    } catch (const Cancelled&) {
        if (PyErr_Occurred()) throw pybind11::error_already_set();
        throw;
    }
}

inline StepProgress stepping(const Progress& progress) {
    if (!progress) return {};
    return [&progress](int64_t done, int64_t total) {
        pybind11::gil_scoped_acquire gil;
        progress(done, total);
    };
}

inline std::span<const int32_t> view(const Tokens& tokens) {
    if (tokens.ndim() != 1) {
        throw RequestError("tokens have " + std::to_string(tokens.ndim()) +
                           " dimensions, wanted a flat sequence of ids");
    }
    return {tokens.data(), static_cast<size_t>(tokens.size())};
}

/// A copy of `data` as an array of `rows` rows; None when there is nothing.
template <typename T>
std::optional<pybind11::array_t<T>> table(const std::vector<T>& data, size_t rows) {
    if (data.empty()) return std::nullopt;
    pybind11::array_t<T> out({rows, data.size() / rows});
    std::ranges::copy(data, out.mutable_data());
    return out;
}

/// A copy of `data` as a flat array; None when there is nothing.
template <typename T>
std::optional<pybind11::array_t<T>> column(const std::vector<T>& data) {
    if (data.empty()) return std::nullopt;
    return pybind11::array_t<T>(static_cast<pybind11::ssize_t>(data.size()), data.data());
}

using SessionClass = pybind11::class_<Session>;
void register_speculative_steps(pybind11::module_& m, SessionClass& session);
void register_diagnostics(pybind11::module_& m, SessionClass& session);

}  // namespace ds4::bindings
