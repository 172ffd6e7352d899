"""Packs an output for the CPU's kernels, so that it is used from its mapping and not interleaved at each start.

The native loader decides which tensors are packed, and how. To find out, it is shown the header of the output above
data that are all zeros.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from gguf import GGMLQuantizationType as Type
from gguf import GGUFValueType as Kind
from numpy.typing import NDArray

from ds4py import _native
from ds4py.errors import FormatError

from . import contracts, shards
from .plan import SLAB, OutputFile, Slab, Tensor
from .values import Metadata, array, text, u32

ALIGNMENT = 64
"""Alignment of tensors in bytes, as long as a vector of tiles."""
SUFFIX = "-packed"
"""The end of a packed file's architecture, so that no other program takes the bytes for rows."""


@dataclass(frozen=True)
class Packed(Tensor):
    """A tensor whose rows are made as in a plain file, and then packed as tiles."""

    packing: _native.Packing = field(kw_only=True)

    @property
    def stored_kind(self) -> Type:
        """The type in the header: bytes, which no other program takes for values."""
        return Type.I8

    @property
    def stored_shape(self) -> tuple[int, ...]:
        return (self.packing.count, self.packing.bytes)

    @property
    def nbytes(self) -> int:
        return self.packing.count * self.packing.bytes

    @property
    def slab_count(self) -> int:
        return self.packing.count * -(-self._rows // self._height)

    def slabs(self) -> Iterator[Slab]:
        """Yields the tensor in slabs of whole tiles of one matrix. A part may hold several matrices."""
        parts, tile = self.packing.count // len(self.parts), self.packing.bytes // -(-self._rows // _native.PACKED_TILE)
        for matrix in range(self.packing.count):
            part, place = divmod(matrix, parts)
            for first in range(0, self._rows, self._height):
                offset = matrix * self.packing.bytes + first // _native.PACKED_TILE * tile
                yield Slab(part, place * self._rows + first, min(self._height, self._rows - first), offset)

    def bytes_of(self, slab: Slab) -> NDArray[np.uint8]:
        return _native.pack_rows(super().bytes_of(slab), int(self.kind), self.packing.type, self.columns)

    @property
    def _rows(self) -> int:
        """Rows of one matrix."""
        return self.elements // self.columns // self.packing.count

    @property
    def _height(self) -> int:
        return max(1, SLAB // self.columns // _native.PACKED_TILE) * _native.PACKED_TILE


def pack_output(output: OutputFile) -> OutputFile:
    """Packs every tensor of an output that the kernels accept.

    Raises FormatError for a model that this version could not load.
    """
    found = {each.name: each for each in packable_tensors(output)}
    tensors = [pack_tensor(tensor, found[tensor.name]) if tensor.name in found else tensor for tensor in output.tensors]
    return OutputFile(output.path, {**output.metadata, **packed_keys(output, list(found.values()))}, tensors, ALIGNMENT)


def packable_tensors(output: OutputFile) -> list[_native.Packing]:
    """Asks the loader which tensors of an output it would pack."""
    drafter = contracts.recognise_contract({tensor.name for tensor in output.tensors}) is not None
    with tempfile.TemporaryDirectory() as folder:
        (file,) = shards.plan_files(replace(output, path=Path(folder) / output.path.name))
        with file.path.open("wb") as stream:
            stream.write(file.header)
            stream.truncate(file.size)  # the data are a hole, which takes no space
        try:
            return _native.packing(_native.GgufFile.open(file.path), drafter=drafter)
        except FormatError as error:
            raise FormatError(str(error).replace(str(file.path), f"{output.path} (as it would be)")) from None


def pack_tensor(tensor: Tensor, how: _native.Packing) -> Packed:
    """Returns the tensor with its packing."""
    return Packed(tensor.name, tensor.shape, tensor.kind, tensor.parts, tensor.importance, packing=how)


def packed_keys(output: OutputFile, found: list[_native.Packing]) -> Metadata:
    """Returns the metadata that describe the packed tensors (docs/formats.md)."""
    shapes = {tensor.name: tensor.shape for tensor in output.tensors}
    sizes = [size for each in found for size in [*reversed(shapes[each.name]), 1][:3]]
    return {
        "general.architecture": text(output.metadata["general.architecture"].value + SUFFIX),
        "ds4.packed.layout": u32(_native.PACKED_LAYOUT),
        "ds4.packed.tensors": array([each.name for each in found], Kind.STRING),
        "ds4.packed.types": array([each.type for each in found], Kind.UINT32),
        "ds4.packed.shapes": array(sizes, Kind.UINT64),
    }
