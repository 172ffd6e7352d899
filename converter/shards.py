"""Divides an output into files, each with its header and the offsets of its tensors."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import gguf
import numpy as np
from gguf import GGUFValueType as Kind

from ds4py.errors import RequestError

from .plan import OutputFile, Tensor
from .values import Metadata, Value, u32

UNITS = {"K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
MAX_SHARDS = 99_999


@dataclass(frozen=True)
class File:
    """One file to write: its header, its tensors, and their offsets from the start of the file."""

    path: Path
    header: bytes
    tensors: tuple[Tensor, ...]
    offsets: tuple[int, ...]
    size: int

    def fingerprint(self, source: Sequence[str]) -> str:
        """Returns a digest that changes if this file would be written differently."""
        digest = hashlib.sha256(self.header)
        for tensor in self.tensors:
            if tensor.importance is not None:
                digest.update(tensor.importance.data)
        digest.update("\n".join(source).encode())
        return digest.hexdigest()


def plan_files(output: OutputFile, limit: int | None = None) -> list[File]:
    """Returns the files of an output: one, or shards of at most `limit` bytes each.

    Raises RequestError if a tensor exceeds the limit.
    """
    alignment = output.alignment
    whole = header(output.metadata, output.tensors, alignment)
    if limit is None or len(whole) + padded_size(output.tensors, alignment) <= limit:
        return [place_tensors(output.path, whole, output.tensors, alignment)]
    groups = divide(output.tensors, limit - len(whole) - alignment, limit, alignment)
    if len(groups) > MAX_SHARDS:
        raise RequestError(f"--split {limit} gives {len(groups)} shards, more than the format can number; split larger")
    found = []
    for number, group in enumerate(groups):
        keys = split_keys(number, len(groups), len(output.tensors))
        if number == 0:
            keys = {**output.metadata, **keys}
        path = shard_path(output.path, number, len(groups))
        found.append(place_tensors(path, header(keys, group, alignment), group, alignment))
    return found


def divide(tensors: Sequence[Tensor], room: int, limit: int, alignment: int) -> list[list[Tensor]]:
    """Groups tensors in their order, with at most `room` bytes in each group."""
    groups: list[list[Tensor]] = [[]]
    used = 0
    for tensor in tensors:
        size = padded(tensor.nbytes, alignment)
        if size > room:
            raise RequestError(f"--split {limit} is too small for '{tensor.name}', which has {tensor.nbytes} bytes")
        if used + size > room:
            groups.append([])
            used = 0
        groups[-1].append(tensor)
        used += size
    return groups


def split_keys(number: int, count: int, tensors: int) -> Metadata:
    """Returns the keys that llama.cpp expects in a shard, with its types."""
    return {
        "split.no": Value(number, Kind.UINT16),
        "split.count": Value(count, Kind.UINT16),
        "split.tensors.count": Value(tensors, Kind.INT32),
    }


def shard_path(path: Path, number: int, count: int) -> Path:
    """Returns the path of a shard, `NAME-00001-of-00003.gguf`. Numbers in names begin with 1."""
    return path.with_name(f"{path.name.removesuffix('.gguf')}-{number + 1:05}-of-{count:05}.gguf")


def place_tensors(path: Path, head: bytes, tensors: Sequence[Tensor], alignment: int) -> File:
    """Places the tensors one after the other behind the header."""
    place, offsets = padded(len(head), alignment), []
    for tensor in tensors:
        offsets.append(place)
        place += padded(tensor.nbytes, alignment)
    return File(path, head, tuple(tensors), tuple(offsets), place)


def header(metadata: Metadata, tensors: Sequence[Tensor], alignment: int) -> bytes:
    """Returns everything before the data. The format's own library writes it."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "header"
        writer = gguf.GGUFWriter(path, arch="")
        writer.kv_data[0].clear()  # the metadata have the architecture, and later shards have none
        writer.data_alignment = alignment
        for key, value in {**metadata, "general.alignment": u32(alignment)}.items():
            writer.add_key_value(key, value.value, value.kind, sub_type=value.element)
        for tensor in tensors:
            shape, kind = tensor.stored_shape, tensor.stored_kind
            writer.add_tensor_info(tensor.name, shape, np.dtype(np.float32), tensor.nbytes, kind)
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_ti_data_to_file()
        writer.close()
        return path.read_bytes()


def padded(size: int, alignment: int) -> int:
    """Rounds a size up to the alignment."""
    return -(-size // alignment) * alignment


def padded_size(tensors: Sequence[Tensor], alignment: int) -> int:
    """Returns the bytes of the tensors in a file."""
    return alignment + sum(padded(tensor.nbytes, alignment) for tensor in tensors)


def size_limit(text: str) -> int:
    """Parses a size such as `48G` or `500M`, in powers of 1000 as in llama.cpp's tool. Raises RequestError."""
    digits, unit = (text[:-1], text[-1].upper()) if text[-1:].isalpha() else (text, "")
    try:
        found = int(float(digits) * (UNITS[unit] if unit else 1))
    except (ValueError, KeyError, OverflowError):
        found = 0
    if found < 1:
        raise RequestError(f"--split '{text}': wanted a size such as 48G or 500M")
    return found
