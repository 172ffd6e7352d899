"""Reads matrices of FP8 E4M3, which have one scale for each block of 128 x 128."""

from __future__ import annotations

import numpy as np
from gguf import GGMLQuantizationType as Type
from numpy.typing import NDArray

from ds4py import _native
from ds4py.errors import FormatError

from .safetensors import StoredTensor

BLOCK = 128
POWERS: NDArray[np.float32] = np.append(np.exp2(np.arange(255) - 127.0), np.nan).astype(np.float32)
"""The values of the codes of E8M0."""
MAX_SCALE = 2.0**119
"""The greatest scale with which every E4M3 value fits F32."""


class Fp8:
    """A matrix of FP8 codes with scales.

    `weight` is [rows, columns] of E4M3 codes. `scale` is [ceil(rows/128), ceil(columns/128)] of E8M0 or F32.
    """

    kind: Type | None = None

    def __init__(self, weight: StoredTensor, scale: StoredTensor) -> None:
        self.name = weight.name
        self.rows, self.columns = weight.shape
        self._weight = weight
        self._scale = read_scales(scale)

    def blocks(self, first: int, count: int) -> NDArray[np.uint8]:
        """Raises TypeError, because ggml has no such type."""
        raise TypeError(f"{self.name} is FP8")

    def floats(self, first: int, count: int) -> NDArray[np.float32]:
        """Returns `count` rows as [count, columns], exactly if the scales are powers of two. NaN codes stay NaN."""
        entry = self._weight
        codes = entry.shard.read(entry.offset + first * self.columns, count * self.columns)
        scales = self._scale[np.arange(first, first + count) // BLOCK]
        return _native.decode_fp8(codes.reshape(count, self.columns), scales)


def read_scales(scale: StoredTensor) -> NDArray[np.float32]:
    """Returns the scales as F32. Raises FormatError for NaN, and for scales with which a value exceeds F32."""
    raw = scale.shard.read(scale.offset, scale.nbytes)
    values = raw.view("<f4") if scale.dtype == "F32" else e8m0(raw)
    if not (np.abs(values) <= MAX_SCALE).all():
        raise FormatError(f"tensor '{scale.name}' holds a scale that is NaN or above 2^119; download the file again")
    return values.reshape(scale.shape)


def e8m0(codes: NDArray[np.uint8]) -> NDArray[np.float32]:
    """Returns 2^(code - 127), and NaN for the code 255."""
    return POWERS[codes]
