"""What is to be written: files, their metadata and tensors, and where each tensor's rows come from."""

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
"""Elements that are worked on at once: few enough to stay in a shared cache and to stop soon (a quarter of a second in
the slowest types), many enough to hide the calls."""

MAX_F16 = 65504.0
WIDE = (Type.F32, Type.BF16, Type.MXFP4)
"""Types that hold any value of F32, at least roughly."""


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
    def stored_kind(self) -> Type:
        """The type that the file's header gives it."""
        return self.kind

    @property
    def stored_shape(self) -> tuple[int, ...]:
        """The shape that the file's header gives it."""
        return self.shape

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
        values = part.floats(slab.first, slab.count)
        self._check(part.name, _native.greatest_magnitude(values))
        return quantise.quantise(self.kind, values, self._weights(slab.part))

    def _check(self, source: str, greatest: float) -> None:
        """Raises FormatError where the greatest magnitude is not finite, or more than the type can hold: the scales
        of most blocks are F16."""
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
