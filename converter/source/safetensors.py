"""Reads and checks the header of a safetensors file, and reads any of its bytes.

The format's own library returns arrays of a framework, but NumPy knows neither BF16 nor FP8. Its errors do not name the
tensor. So the header is read here: a length, a JSON object, then the data.
"""

from __future__ import annotations

import json
import math
import os
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ds4py.errors import FormatError
from ds4py.json_types import Json

MAX_HEADER = 100_000_000
"""The longest header that the format allows, in bytes."""

BYTES = {
    "BOOL": 1, "U8": 1, "I8": 1, "F8_E4M3": 1, "F8_E5M2": 1, "F8_E8M0": 1,
    "I16": 2, "U16": 2, "F16": 2, "BF16": 2, "I32": 4, "U32": 4, "F32": 4, "I64": 8, "U64": 8, "F64": 8,
}  # fmt: skip
"""The bytes of an element of each dtype."""


class Shard:
    """An open file. Any thread may read from it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.fd = os.open(path, os.O_RDONLY)
        self.size = os.fstat(self.fd).st_size

    def __del__(self) -> None:
        if hasattr(self, "fd"):
            os.close(self.fd)

    def read(self, offset: int, count: int) -> NDArray[np.uint8]:
        """Returns `count` bytes from `offset` on, read-only. Raises FormatError if the file ends before them."""
        data = os.pread(self.fd, count, offset)
        if len(data) < count:
            raise FormatError(f"{self.path}: ends at byte {offset + len(data)}; it was cut while it was being read")
        return np.frombuffer(data, np.uint8)


@dataclass(frozen=True, slots=True)
class StoredTensor:
    """One tensor of a shard. `shape` has the outermost dimension first; `offset` is from the start of the file."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    shard: Shard
    offset: int
    nbytes: int


def read_header(path: Path) -> dict[str, StoredTensor]:
    """Returns the tensors of a file by name. Raises FormatError naming the file and the tensor that is wrong."""
    shard = Shard(path)
    if shard.size < 8:
        raise FormatError(f"{path}: {shard.size} bytes are no safetensors file")
    (length,) = struct.unpack("<Q", shard.read(0, 8).tobytes())
    if length > min(MAX_HEADER, shard.size - 8):
        raise FormatError(f"{path}: its header claims {length} bytes, the file has {shard.size}; download it again")
    entries = parse(path, shard, shard.read(8, length).tobytes(), 8 + length)
    check_layout(path, shard, entries, 8 + length)
    return {entry.name: entry for entry in entries}


def parse(path: Path, shard: Shard, text: bytes, start: int) -> list[StoredTensor]:
    """Returns the described tensors in the order of their data."""

    def no_duplicates(pairs: list[tuple[str, Any]]) -> Json:
        found = dict(pairs)
        if len(found) != len(pairs):
            names = [name for name, _ in pairs]
            twice = next(name for name in names if names.count(name) > 1)
            raise FormatError(f"{path}: '{twice}' occurs more than once in the header")
        return found

    try:
        header = json.loads(text, object_pairs_hook=no_duplicates)
    except ValueError as error:
        raise FormatError(f"{path}: the header is not JSON ({error}); download it again") from None
    if not isinstance(header, dict):
        raise FormatError(f"{path}: the header is not a JSON object")
    header.pop("__metadata__", None)
    entries = [parse_tensor(path, shard, name, value, start) for name, value in header.items()]
    return sorted(entries, key=lambda each: each.offset)


def parse_tensor(path: Path, shard: Shard, name: str, value: Any, start: int) -> StoredTensor:
    """Checks and returns the description of one tensor."""
    try:
        dtype, shape, (begin, end) = value["dtype"], value["shape"], value["data_offsets"]
        sizes = (*shape, begin, end)
    except (TypeError, KeyError, ValueError):
        raise FormatError(f"{path}: tensor '{name}' is not described by dtype, shape and data_offsets") from None
    if dtype not in BYTES:
        raise FormatError(f"{path}: tensor '{name}' has the unknown dtype {dtype!r}")
    if not all(type(size) is int and size >= 0 for size in sizes):
        raise FormatError(f"{path}: tensor '{name}' has shape {shape} at {begin} to {end}; wanted whole numbers")
    nbytes = math.prod(shape) * BYTES[dtype]
    if end - begin != nbytes:
        raise FormatError(f"{path}: tensor '{name}' ({dtype} {shape}) takes {nbytes} bytes, but has {end - begin}")
    return StoredTensor(name, dtype, tuple(shape), shard, start + begin, nbytes)


def check_layout(path: Path, shard: Shard, entries: list[StoredTensor], start: int) -> None:
    """Raises FormatError unless the tensors fill the file without gap or overlap."""
    place = start
    for each in entries:
        if each.offset != place:
            raise FormatError(f"{path}: tensor '{each.name}' begins at byte {each.offset}, wanted {place}")
        place += each.nbytes
        if place > shard.size:
            raise FormatError(
                f"{path}: ends at byte {shard.size}, inside tensor '{each.name}' which goes to {place}; the file is "
                "truncated, download it again"
            )
    if place != shard.size:
        raise FormatError(f"{path}: {shard.size - place} bytes follow the last tensor")
