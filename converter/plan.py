"""What is to be written: files, their metadata and tensors, and where each tensor's rows come from."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from gguf import GGMLQuantizationType as Type
from numpy.typing import NDArray

from ds4py.errors import FormatError

from . import quantise
from .source.rows import Rows
from .values import Metadata

SLAB = 1 << 19
"""Elements that are worked on at once: few enough to stay in a core's cache, many enough to hide the calls."""


@dataclass(frozen=True)
class Slab:
    """`count` rows of one part from `first` on, whose bytes belong at `offset` in the tensor."""

    part: int
    first: int
    count: int
    offset: int


@dataclass(frozen=True)
class Tensor:
    """A tensor to write. `parts` are its matrices one after the other; `importance` is [1 or parts, columns]."""

    name: str
    shape: tuple[int, ...]
    kind: Type
    parts: tuple[Rows, ...]
    importance: NDArray[np.float32] | None = None

    @property
    def columns(self) -> int:
        return self.shape[-1]

    @property
    def nbytes(self) -> int:
        return self.elements // self.columns * quantise.row_bytes(self.kind, self.columns)

    @property
    def elements(self) -> int:
        return int(np.prod(self.shape, dtype=np.int64))

    @property
    def slab_count(self) -> int:
        """How many `slabs` there are."""
        return sum(-(-part.rows // self._height) for part in self.parts)

    def slabs(self) -> Iterator[Slab]:
        """The tensor in pieces of about SLAB elements."""
        height = self._height
        row, offset = quantise.row_bytes(self.kind, self.columns), 0
        for number, part in enumerate(self.parts):
            for first in range(0, part.rows, height):
                count = min(height, part.rows - first)
                yield Slab(number, first, count, offset)
                offset += count * row

    def bytes_of(self, slab: Slab) -> NDArray[np.uint8]:
        """The bytes of a slab as `kind`: as they are stored where the type is the same, else quantised anew."""
        part = self.parts[slab.part]
        if part.kind == self.kind:
            return part.blocks(slab.first, slab.count)
        out = quantise.quantise(self.kind, part.floats(slab.first, slab.count), self._weights(slab.part))
        if not quantise.is_finite(self.kind, out):
            raise FormatError(
                f"tensor '{part.name}' has values that {self.kind.name} cannot hold; give another type for "
                f"'{self.name}' (--type)"
            )
        return out

    @property
    def _height(self) -> int:
        return max(1, SLAB // self.columns)

    def _weights(self, part: int) -> NDArray[np.float32] | None:
        if self.importance is None:
            return None
        weights: NDArray[np.float32] = self.importance[part if len(self.importance) > 1 else 0]
        return weights


@dataclass
class Output:
    """A GGUF file to write, or the set of its shards."""

    path: Path
    metadata: Metadata
    tensors: list[Tensor]
