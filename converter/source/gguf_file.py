"""Reads a GGUF file as a source: its metadata unchanged, and its tensors as rows."""

from __future__ import annotations

from pathlib import Path

import gguf
import numpy as np
from gguf import GGMLQuantizationType as Type
from gguf import GGUFValueType as Kind

from ds4py import _native
from ds4py.errors import FormatError

from .. import quantise
from ..values import Metadata, Value, text
from .rows import GgmlRows, Rows
from .safetensors import Shard

SPLIT = ("split.no", "split.count", "split.tensors.count")
"""Keys that describe how a file was split."""


class GgufTensor:
    """One tensor of a file. `shape` has the outermost dimension first.

    Of a packed tensor, shape and type are those of the values before packing.
    """

    def __init__(self, shard: Shard, found: gguf.ReaderTensor, described: _native.GgufTensor) -> None:
        self.name = str(found.name)
        self.kind = Type[described.type]
        self.shape: tuple[int, ...] = tuple(reversed(described.shape))
        self.nbytes = int(found.n_bytes)
        self.packed = described.packed > 0
        self._shard, self._offset = shard, int(found.data_offset)

    def parts(self) -> tuple[Rows, ...]:
        """Returns the matrices of the tensor, one for each expert. Raises FormatError for a packed tensor."""
        if self.packed:
            raise FormatError(f"{self._shard.path}: is packed for the CPU's kernels; give the file it was packed from")
        columns = self.shape[-1]
        rows = self.shape[-2] if len(self.shape) > 1 else 1
        matrices = int(np.prod(self.shape[:-2], dtype=np.int64))
        size = rows * quantise.row_bytes(self.kind, columns)
        return tuple(
            GgmlRows(self.name, self._shard, self._offset + matrix * size, self.kind, rows, columns)
            for matrix in range(matrices)
        )


class GgufSource:
    """A GGUF file with all of its shards, whichever of them is named. Raises FormatError if it is not valid."""

    def __init__(self, path: Path) -> None:
        file = _native.GgufFile.open(path)
        described = {tensor.name: tensor for tensor in file.tensors()}
        self.paths = [Path(each) for each in file.paths]
        self.metadata: Metadata = {}
        self.tensors: dict[str, GgufTensor] = {}
        for each in self.paths:
            reader, shard = gguf.GGUFReader(each), Shard(each)
            if not self.metadata:
                self.metadata = read_metadata(reader)
            for found in reader.tensors:
                self.tensors[str(found.name)] = GgufTensor(shard, found, described[str(found.name)])
        self.packed = any(tensor.packed for tensor in self.tensors.values())
        if self.packed:
            self.metadata["general.architecture"] = text(file.metadata()["general.architecture"])

    def value(self, key: str) -> object:
        """Returns the value of a key, or None."""
        found = self.metadata.get(key)
        return None if found is None else found.value

    def architecture(self) -> str:
        """Returns the architecture. Raises FormatError if it is missing."""
        found = self.value("general.architecture")
        if not isinstance(found, str):
            raise FormatError(f"{self.paths[0]}: key 'general.architecture' is missing")
        return found

    def identity(self) -> list[str]:
        """Describes names, sizes and times of the files, to find out whether they have changed."""
        return [f"{path} {path.stat().st_size} {path.stat().st_mtime_ns}" for path in self.paths]


def read_metadata(reader: gguf.GGUFReader) -> Metadata:
    """Returns the keys with their types, without those that the format or a split adds."""
    found: Metadata = {}
    for key, entry in reader.fields.items():
        if key.startswith("GGUF.") or key in SPLIT:
            continue
        kinds = [Kind(kind) for kind in entry.types]
        value = entry.contents()
        if kinds[0] != Kind.ARRAY:
            found[key] = Value(value, kinds[0])
        elif len(value):  # the reader does not keep the element type of an empty array
            found[key] = Value(list(value), Kind.ARRAY, kinds[-1])
    return found
