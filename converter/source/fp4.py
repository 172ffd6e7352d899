"""Reads matrices of FP4 E2M1, which have two elements in a byte and an E8M0 scale for 32 elements of a row."""

from __future__ import annotations

import numpy as np
from gguf import GGMLQuantizationType as Type
from numpy.typing import NDArray

from ds4py import _native
from ds4py.errors import FormatError

from .safetensors import StoredTensor

BLOCK = 32
MAX_CODE = 252
"""The code of the greatest scale, 2^125, with which every E2M1 value (up to 6) fits F32."""


class Fp4:
    """A matrix of FP4 codes with scales.

    `weight` is [rows, columns / 2], with element 2j in the low half of byte j. `scale` is [rows, columns / 32].
    """

    kind: Type | None = Type.MXFP4

    def __init__(self, weight: StoredTensor, scale: StoredTensor) -> None:
        self.name = weight.name
        self.rows, self.columns = weight.shape[0], 2 * weight.shape[1]
        self._weight, self._scale = weight, scale

    def blocks(self, first: int, count: int) -> NDArray[np.uint8]:
        """Returns the same codes and scales in the order of MXFP4. Nothing is rounded."""
        return _native.fp4_to_mxfp4(*self._read(first, count))

    def floats(self, first: int, count: int) -> NDArray[np.float32]:
        """Returns `count` rows as [count, columns], exactly."""
        return _native.decode_fp4(*self._read(first, count)).reshape(count, self.columns)

    def _read(self, first: int, count: int) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
        weight, scale = self._weight, self._scale
        half, groups = self.columns // 2, self.columns // BLOCK
        codes = weight.shard.read(weight.offset + first * half, count * half)
        scales = scale.shard.read(scale.offset + first * groups, count * groups)
        if scales.max() > MAX_CODE:
            raise FormatError(
                f"tensor '{scale.name}' holds a scale that is NaN or above 2^125; download the file again"
            )
        return codes, scales
