#include "formats/formats.h"

#include <pybind11/numpy.h>

#include "arrays.h"
#include "module.h"

namespace py = pybind11;

namespace ds4::bindings {

namespace {

using Bytes = std::span<const uint8_t>;

template <typename T>
std::span<T> mutable_view(py::array_t<T>& array) {
    return {array.mutable_data(), static_cast<size_t>(array.size())};
}

py::array_t<float> decode_fp8(const py::array& codes, const py::array& scales) {
    const auto bytes = view_of<uint8_t>(codes, 2, "decode_fp8: codes");
    const auto factors = view_of<float>(scales, 2, "decode_fp8: scales");
    const auto rows = static_cast<size_t>(codes.shape(0)), columns = static_cast<size_t>(codes.shape(1));
    const size_t groups = (columns + formats::kFp8Block - 1) / formats::kFp8Block;
    if (static_cast<size_t>(scales.shape(0)) != rows || static_cast<size_t>(scales.shape(1)) != groups) {
        throw RequestError("decode_fp8: scales are " + std::to_string(scales.shape(0)) + " x " +
                           std::to_string(scales.shape(1)) + ", wanted " + std::to_string(rows) + " x " +
                           std::to_string(groups) + ", one for each 128 codes of a row");
    }
    py::array_t<float> result({codes.shape(0), codes.shape(1)});
    const std::span<float> out = mutable_view(result);
    py::gil_scoped_release release;
    formats::decode_fp8(bytes, factors, columns, out);
    return result;
}

/// Codes and scales of FP4, one scale for each sixteen bytes.
std::pair<Bytes, Bytes> fp4_blocks(const py::array& codes, const py::array& scales) {
    const auto bytes = view_of<uint8_t>(codes, 1, "FP4: codes");
    const auto exponents = view_of<uint8_t>(scales, 1, "FP4: scales");
    if (bytes.size() != exponents.size() * formats::kFp4Block / 2) {
        throw RequestError("FP4: there are " + std::to_string(exponents.size()) + " scales for " +
                           std::to_string(bytes.size()) + " bytes, wanted one for each 16");
    }
    return {bytes, exponents};
}

py::array_t<float> decode_fp4(const py::array& codes, const py::array& scales) {
    const auto [bytes, exponents] = fp4_blocks(codes, scales);
    py::array_t<float> result(scales.size() * static_cast<py::ssize_t>(formats::kFp4Block));
    const std::span<float> out = mutable_view(result);
    py::gil_scoped_release release;
    formats::decode_fp4(bytes, exponents, out);
    return result;
}

py::array_t<uint8_t> fp4_to_mxfp4(const py::array& codes, const py::array& scales) {
    const auto [bytes, exponents] = fp4_blocks(codes, scales);
    py::array_t<uint8_t> result(scales.size() * static_cast<py::ssize_t>(formats::kMxfp4Bytes));
    const std::span<uint8_t> out = mutable_view(result);
    py::gil_scoped_release release;
    formats::fp4_to_mxfp4(bytes, exponents, out);
    return result;
}

float greatest_magnitude(const py::array& values) {
    const auto view = view_of<float>(values, 2, "greatest_magnitude: values");
    py::gil_scoped_release release;
    return formats::greatest_magnitude(view);
}

}  // namespace

void register_formats(py::module_& m) {
    m.def("decode_fp8", &decode_fp8, py::arg("codes"), py::arg("scales"),
          "Values [rows, columns] of E4M3 codes (uint8), scales float32 [rows, ceil(columns / 128)]; NaN where a "
          "code means it.");
    m.def("decode_fp4", &decode_fp4, py::arg("codes"), py::arg("scales"),
          "Values [32 n] of E2M1 codes [16 n] (uint8), the low half first, under E8M0 scales [n] up to code 252.");
    m.def("fp4_to_mxfp4", &fp4_to_mxfp4, py::arg("codes"), py::arg("scales"),
          "The same codes and scales as bytes [17 n] of ggml's MXFP4.");
    m.def("greatest_magnitude", &greatest_magnitude, py::arg("values"),
          "Of values [rows, columns]; infinite or NaN as soon as one is.");
}

}  // namespace ds4::bindings
