"""Reads importance matrices of llama.cpp's tools: mean squares of each column's activations, by tensor."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import gguf
import numpy as np
from numpy.typing import NDArray

from ds4py import _native
from ds4py.errors import FormatError

from .roles import Slot
from .values import Metadata, text, u32

SUMS, COUNTS = ".in_sum2", ".counts"


@dataclass(frozen=True)
class Imatrix:
    """An importance matrix.

    Attributes:
        path: its file.
        values: by tensor name, a row of columns for each matrix, flattened. A tensor of experts has many matrices.
        chunks: how many chunks of text were evaluated.
        dataset: the name of the text.
    """

    path: Path
    values: dict[str, NDArray[np.float32]]
    chunks: int
    dataset: str

    def rows_for(self, slot: Slot, name: str) -> NDArray[np.float32] | None:
        """Returns the importance [matrices, columns] of a tensor, or None if there is none.

        Raises FormatError for another size.
        """
        found = self.values.get(name)
        if found is None:
            return None
        matrices, columns = (slot.shape[0] if len(slot.shape) > 2 else 1), slot.shape[-1]
        if found.size not in (columns, matrices * columns):
            raise FormatError(
                f"{self.path}: importance of '{name}' has {found.size} values, wanted {matrices * columns}; "
                "it was made for another model"
            )
        return np.ascontiguousarray(found.reshape(-1, columns))

    def metadata(self) -> Metadata:
        """Returns the metadata that name the importance matrix, under llama.cpp's keys."""
        return {
            "quantize.imatrix.file": text(self.path.name),
            "quantize.imatrix.dataset": text(self.dataset),
            "quantize.imatrix.entries_count": u32(len(self.values)),
            "quantize.imatrix.chunks_count": u32(self.chunks),
        }


def read_imatrix(path: Path) -> Imatrix:
    """Reads either format, which the first bytes tell apart. Raises FormatError naming an entry that is wrong."""
    with path.open("rb") as file:
        magic = file.read(4)
    found = read_gguf(path) if magic == b"GGUF" else read_dat(path)
    for name, values in found.values.items():
        if not (np.isfinite(values).all() and (values >= 0).all()):
            raise FormatError(f"{path}: importance of '{name}' holds values that are negative or not finite")
    return found


def read_gguf(path: Path) -> Imatrix:
    """Reads sums of squares and counts from a GGUF file. An expert that was never used gets ones."""
    metadata = _native.GgufFile.open(path).metadata()
    tensors = {tensor.name: tensor for tensor in gguf.GGUFReader(path).tensors}
    values = {}
    for name in tensors:
        if not name.endswith(SUMS):
            continue
        base = name.removesuffix(SUMS)
        if base + COUNTS not in tensors:
            raise FormatError(f"{path}: tensor '{base + COUNTS}' is missing beside '{name}'")
        sums, counts = (np.array(tensors[each].data, np.float32) for each in (name, base + COUNTS))
        sums, counts = sums.reshape(-1, sums.shape[-1]), counts.reshape(-1, 1)
        if len(sums) != len(counts):
            raise FormatError(f"{path}: '{name}' has {len(sums)} rows and '{base + COUNTS}' {len(counts)}")
        values[base] = np.where(counts > 0, sums / np.maximum(counts, 1), 1).astype(np.float32).ravel()
    datasets = metadata.get("imatrix.datasets") or [""]
    return Imatrix(path, values, int(metadata.get("imatrix.chunk_count", 0)), str(datasets[0]))


def read_dat(path: Path) -> Imatrix:
    """Reads the older format.

    It counts its entries of name, calls and sums. The number of chunks and the name of the data set follow.
    """
    data = Reader(path, path.read_bytes())
    values: dict[str, NDArray[np.float32]] = {}
    for _ in data.counted(data.number()):
        name = data.string()
        calls = data.number()
        sums = data.floats(data.number(), name)
        values[name] = sums / np.float32(max(calls, 1))
    chunks = 0 if data.at_end() else data.number()
    return Imatrix(path, values, chunks, "" if data.at_end() else data.string())


class Reader:
    """Reads little-endian numbers, strings and floats in turn. Raises FormatError if the file ends too early."""

    def __init__(self, path: Path, data: bytes) -> None:
        self.path, self.data, self.place = path, data, 0

    def at_end(self) -> bool:
        return self.place >= len(self.data)

    def take(self, count: int, what: str) -> bytes:
        if count < 0 or count > len(self.data) - self.place:
            raise FormatError(f"{self.path}: ends within {what}: truncated, or not an imatrix file")
        self.place += count
        return self.data[self.place - count : self.place]

    def number(self) -> int:
        value: int = struct.unpack("<i", self.take(4, "a number"))[0]
        return value

    def string(self) -> str:
        return self.take(self.number(), "a name").decode("utf-8", "replace")

    def floats(self, count: int, name: str) -> NDArray[np.float32]:
        return np.frombuffer(self.take(4 * count, f"the importance of '{name}'"), "<f4")

    def counted(self, count: int) -> Iterator[int]:
        if count < 1:
            raise FormatError(f"{self.path}: holds {count} entries: not an imatrix file")
        return iter(range(count))
