"""FP4 E2M1 matrices, two elements a byte, with one E8M0 scale for each 32 elements of a row."""

from __future__ import annotations

import numpy as np
from gguf import GGMLQuantizationType as Type
from numpy.typing import NDArray

from ds4py.errors import FormatError

from .fp8 import e8m0
from .safetensors import Entry

BLOCK = 32
VALUES = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6], np.float32)
"""What the sixteen codes of E2M1 stand for."""
PAIRS = np.stack([np.tile(VALUES, 16), np.repeat(VALUES, 16)], axis=1).view(np.complex64).ravel()
"""The two values of a byte, the low half's first, as one thing that is looked up at once."""
MAX_CODE = 252
"""The greatest scale, 2^125, with which every E2M1 value (up to 6) fits F32."""


class Fp4:
    """`weight` [rows, columns / 2], element 2j in the low half of byte j; `scale` [rows, columns / 32]."""

    kind: Type | None = Type.MXFP4

    def __init__(self, weight: Entry, scale: Entry) -> None:
        self.name = weight.name
        self.rows, self.columns = weight.shape[0], 2 * weight.shape[1]
        self._weight, self._scale = weight, scale

    def blocks(self, first: int, count: int) -> NDArray[np.uint8]:
        """The same codes and scales in MXFP4's order: nothing is rounded."""
        return to_mxfp4(*self._read(first, count))

    def floats(self, first: int, count: int) -> NDArray[np.float32]:
        """As Rows.floats; exact."""
        codes, scales = self._read(first, count)
        out = PAIRS[codes].view(np.float32).reshape(-1, BLOCK)
        out *= e8m0(scales)[:, None]
        return out.reshape(count, self.columns)

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


def to_mxfp4(codes: NDArray[np.uint8], scales: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Blocks of ggml: the scale, then 16 bytes with element j in the low half and element j + 16 in the high one."""
    pairs = codes.reshape(-1, 2, BLOCK // 4)  # block, half of the block, byte
    out = np.empty((len(pairs), 1 + BLOCK // 2), np.uint8)
    out[:, 0] = scales
    first, second = pairs[:, 0], pairs[:, 1]
    out[:, 1::2] = (first & 0x0F) | (second << 4)
    out[:, 2::2] = (first >> 4) | (second & 0xF0)
    return out.ravel()
