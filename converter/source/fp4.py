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

LOW, HALF = np.uint64(0x0F0F_0F0F_0F0F_0F0F), np.uint64(0xFFFF_FFFF)
MXFP4 = np.dtype([("scale", "u1"), ("start", "<u8"), ("end", "<u8")])


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
        # Every byte is in range; saying so with clip spares take a check and a buffer.
        out = np.take(PAIRS, codes.astype(np.intp), mode="clip").view(np.float32).reshape(-1, BLOCK)
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
    """Blocks of ggml: the scale, then byte j with element j in its low half and element j + 16 in its high one.

    Eight bytes at a time: those of a block's first and second half are turned into the even and the odd bytes of the
    result, which are then interleaved.
    """
    halves = codes.view("<u8").reshape(-1, 2)
    first, second = halves[:, 0], halves[:, 1]
    even = (first & LOW) | (second & LOW) << np.uint64(4)
    odd = (first >> np.uint64(4) & LOW) | (second & ~LOW)
    out = np.empty(len(halves), MXFP4)
    out["scale"] = scales
    out["start"] = spread(even & HALF) | spread(odd & HALF) << np.uint64(8)
    out["end"] = spread(even >> np.uint64(32)) | spread(odd >> np.uint64(32)) << np.uint64(8)
    return out.view(np.uint8)


def spread(x: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Four bytes apart, with a zero after each."""
    pairs = (x | x << np.uint64(16)) & np.uint64(0x0000_FFFF_0000_FFFF)
    out: NDArray[np.uint64] = (pairs | pairs << np.uint64(8)) & np.uint64(0x00FF_00FF_00FF_00FF)
    return out
