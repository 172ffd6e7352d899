"""Describes what is to be written: files, their metadata and tensors, and the source of each tensor's rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from gguf import GGMLQuantizationType as Type
from numpy.typing import NDArray

from ds4py import _native
from ds4py.errors import FormatError

from . import quantise
from .source.rows import Rows, not_finite
from .values import Metadata

SLAB = 1 << 20
"""Elements that are converted at once. They are few enough to stay in a shared cache and to stop soon (a quarter of a
second in the slowest types), and many enough to hide the cost of calls."""

MAX_F16 = 65504.0
WIDE = (Type.F32, Type.BF16, Type.MXFP4)
"""Types that can hold the magnitude of any F32 value."""


@dataclass(frozen=True)
class Slab:
    """A run of `count` rows of one part that starts at row `first`. Its bytes belong at `offset` in the tensor."""

    part: int
    first: int
    count: int
    offset: int


@dataclass(frozen=True)
class Tensor:
    """A tensor to write.

    Attributes:
        name: its name in the file.
        shape: its sizes, outermost dimension first.
        kind: its type.
        parts: its matrices, one after the other.
        importance: [1 or parts, columns], or None.
    """

    name: str
    shape: tuple[int, ...]
    kind: Type
    parts: tuple[Rows, ...]
    importance: NDArray[np.float32] | None = None

    @property
    def columns(self) -> int:
        return self.shape[-1]

    @property
    def stored_kind(self) -> Type:
        """The type of the tensor in the header of the file."""
        return self.kind

    @property
    def stored_shape(self) -> tuple[int, ...]:
        """The shape of the tensor in the header of the file."""
        return self.shape

    @property
    def nbytes(self) -> int:
        return self.elements // self.columns * quantise.row_bytes(self.kind, self.columns)

    @property
    def elements(self) -> int:
        return int(np.prod(self.shape, dtype=np.int64))

    @property
    def slab_count(self) -> int:
        """The number of slabs."""
        return sum(-(-part.rows // self._height) for part in self.parts)

    def slabs(self) -> Iterator[Slab]:
        """Yields the tensor in slabs of about SLAB elements."""
        height = self._height
        row, offset = quantise.row_bytes(self.kind, self.columns), 0
        for number, part in enumerate(self.parts):
            for first in range(0, part.rows, height):
                count = min(height, part.rows - first)
                yield Slab(number, first, count, offset)
                offset += count * row

    def bytes_of(self, slab: Slab) -> NDArray[np.uint8]:
        """Returns the bytes of a slab as `kind`. Rows that are stored in this type are copied, others are quantised."""
        part = self.parts[slab.part]
        if part.kind == self.kind:
            return part.blocks(slab.first, slab.count)
        values = part.floats(slab.first, slab.count)
        self._check(part.name, _native.greatest_magnitude(values))
        return quantise.quantise(self.kind, values, self._weights(slab.part))

    def _check(self, source: str, greatest: float) -> None:
        """Raises FormatError if the greatest magnitude is not finite or exceeds what the type can hold.

        The scales of most types are F16.
        """
        if not np.isfinite(greatest):
            raise not_finite(source)
        if greatest > MAX_F16 and self.kind not in WIDE:
            raise FormatError(
                f"tensor '{source}' has values up to {greatest:.4g}, which {self.kind.name} cannot hold; give another "
                f"type for '{self.name}' (--type)"
            )

    @property
    def _height(self) -> int:
        return max(1, SLAB // self.columns)

    def _weights(self, part: int) -> NDArray[np.float32] | None:
        if self.importance is None:
            return None
        weights: NDArray[np.float32] = self.importance[part if len(self.importance) > 1 else 0]
        return weights


@dataclass
class OutputFile:
    """A GGUF file to write, or the set of its shards. Tensors begin at multiples of `alignment` bytes."""

    path: Path
    metadata: Metadata
    tensors: list[Tensor]
    alignment: int = 32
