"""Calls ggml's own quantisers and their inverse, in the library that the package installs."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import cffi
import gguf
import numpy as np
from gguf import GGMLQuantizationType as Type
from numpy.typing import NDArray

from ds4py import _native
from ds4py.errors import RequestError

DECLARATIONS = """
typedef void (*to_float_t)(const void * x, float * y, int64_t k);
struct traits {
    const char * name; int64_t block; int64_t interleave; size_t size; bool quantised; to_float_t to_float; void * ref;
};
const struct traits * ggml_get_type_traits(int type);
size_t ggml_quantize_chunk(int type, const float * src, void * dst, int64_t start, int64_t rows, int64_t columns,
                           const float * importance);
bool ggml_quantize_requires_imatrix(int type);
bool ggml_validate_row_data(int type, const void * data, size_t nbytes);
"""

TYPES = {
    kind.name: kind
    for kind in (
        Type.F32, Type.F16, Type.BF16, Type.Q8_0, Type.Q4_0, Type.Q4_1, Type.Q5_0, Type.Q5_1, Type.Q2_K, Type.Q3_K,
        Type.Q4_K, Type.Q5_K, Type.Q6_K, Type.IQ1_S, Type.IQ1_M, Type.IQ2_XXS, Type.IQ2_XS, Type.IQ2_S, Type.IQ3_XXS,
        Type.IQ3_S, Type.IQ4_NL, Type.IQ4_XS, Type.TQ1_0, Type.TQ2_0, Type.MXFP4,
    )
}  # fmt: skip
"""The types that a tensor can be written as, by ggml's names."""

FLOATS = (Type.F32, Type.F16, Type.BF16)
EXPONENT = {Type.F16: np.uint16(0x7C00), Type.BF16: np.uint16(0x7F80)}
"""The bits of the exponent. A value is not finite if all of them are set."""

_ffi = cffi.FFI()
_ffi.cdef(DECLARATIONS)


@cache
def _ggml() -> Any:
    folder = Path(_native.__file__).parent / "lib"
    return _ffi.dlopen(str(next(path for path in folder.iterdir() if "ggml-base" in path.name)))


def type_named(text: str) -> Type:
    """Returns the type with ggml's name, in any case. Raises RequestError with the list of names."""
    found = TYPES.get(text.upper())
    if found is None:
        raise RequestError(f"'{text}' is no type to write, wanted one of {', '.join(TYPES)}")
    return found


def block_size(kind: Type) -> int:
    """Returns the elements of a block. The length of a row must be a multiple of it."""
    return gguf.GGML_QUANT_SIZES[kind][0]


def row_bytes(kind: Type, columns: int) -> int:
    """Returns the bytes of a row."""
    block, size = gguf.GGML_QUANT_SIZES[kind]
    return columns // block * size


def quantise(kind: Type, x: NDArray[np.float32], importance: NDArray[np.float32] | None = None) -> NDArray[np.uint8]:
    """Quantises rows `x` [rows, columns] of finite values to bytes of `kind`.

    `importance` [columns] weighs the errors of the columns. Types that need an importance get ones if there is none.
    """
    rows, columns = x.shape
    out = np.empty(rows * row_bytes(kind, columns), np.uint8)
    if importance is None and _ggml().ggml_quantize_requires_imatrix(int(kind)):
        importance = np.ones(columns, np.float32)
    weights = _ffi.NULL if importance is None else _ffi.from_buffer("float[]", importance.data)
    source, target = _ffi.from_buffer("float[]", x.data), _ffi.from_buffer(out.data, require_writable=True)
    written = _ggml().ggml_quantize_chunk(int(kind), source, target, 0, rows, columns, weights)
    assert written == out.nbytes
    return out


def dequantise(kind: Type, data: NDArray[np.uint8], columns: int) -> NDArray[np.float32]:
    """Returns the values of rows of `kind` as [rows, columns]."""
    if kind == Type.F32:
        return data.view(np.float32).reshape(-1, columns)
    rows = data.nbytes // row_bytes(kind, columns)
    out = np.empty((rows, columns), np.float32)
    target = _ffi.from_buffer("float[]", out.data, require_writable=True)
    _ggml().ggml_get_type_traits(int(kind)).to_float(_ffi.from_buffer(data.data), target, rows * columns)
    return out


def has_values(kind: Type) -> bool:
    """Tells whether `dequantise` supports the type."""
    return kind == Type.F32 or bool(_ggml().ggml_get_type_traits(int(kind)).to_float)


def is_finite(kind: Type, data: NDArray[np.uint8]) -> bool:
    """Tells whether all floats, or all scales of blocks, are finite."""
    if kind == Type.F32:
        values = data.view(np.float32)
        return bool(np.isfinite(values.min()) and np.isfinite(values.max()))
    if kind in EXPONENT:
        mask = EXPONENT[kind]
        return not ((data.view(np.uint16) & mask) == mask).any()
    return bool(_ggml().ggml_validate_row_data(int(kind), _ffi.from_buffer(data.data), data.nbytes))
