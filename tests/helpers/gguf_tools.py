"""Makes GGUF files for tests: small ones byte by byte, so that every byte can be wrong, and edited copies of models."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import gguf
import numpy as np
from paths import GOLDEN

TARGET = GOLDEN / "tiny-target-f32.gguf"
DRAFTER = GOLDEN / "tiny-drafter-f32.gguf"

U8, I8, U16, I16, U32, I32, F32, BOOL, STRING, ARRAY, U64, I64, F64 = range(13)
T_F32, T_Q4_2, T_Q8_0, T_Q4_K, T_I32 = 0, 4, 8, 12, 26


def u32(value: int) -> bytes:
    return struct.pack("<I", value)


def u64(value: int) -> bytes:
    return struct.pack("<Q", value)


def string(text: bytes, length: int | None = None) -> bytes:
    """Returns a GGUF string, with a wrong length if asked for."""
    return u64(len(text) if length is None else length) + text


def array(kind: int, count: int, payload: bytes = b"") -> bytes:
    return u32(kind) + u64(count) + payload


@dataclass
class Tensor:
    """One tensor description; `offset` None is where it belongs, in order and padded."""

    name: bytes
    dims: tuple[int, ...]
    kind: int = T_F32
    nbytes: int = 0
    offset: int | None = None
    n_dims: int | None = None


@dataclass
class Draft:
    """A GGUF file to be: change what should be wrong, then `build()`."""

    keys: list[tuple[bytes, int, bytes]] = field(default_factory=list)
    tensors: list[Tensor] = field(default_factory=list)
    magic: bytes = b"GGUF"
    version: bytes = u32(3)
    n_keys: int | None = None
    n_tensors: int | None = None
    alignment: int = 32
    tail: bytes = b""

    def build(self) -> bytes:
        out = self.magic + self.version
        out += u64(len(self.tensors) if self.n_tensors is None else self.n_tensors)
        out += u64(len(self.keys) if self.n_keys is None else self.n_keys)
        for key, kind, payload in self.keys:
            out += string(key) + u32(kind) + payload
        offset = 0
        for tensor in self.tensors:
            place = offset if tensor.offset is None else tensor.offset
            out += string(tensor.name) + u32(len(tensor.dims) if tensor.n_dims is None else tensor.n_dims)
            out += b"".join(map(u64, tensor.dims)) + u32(tensor.kind) + u64(place)
            end = offset + tensor.nbytes
            offset = -(-end // self.alignment) * self.alignment
        if self.tensors:
            out += bytes(-len(out) % self.alignment) + bytes(end)
        return out + self.tail


def small() -> Draft:
    """Returns a small valid file with every kind of value, two tensors, and its end at the last data byte."""
    return Draft(
        keys=[
            (b"general.architecture", STRING, string(b"deepseek4")),
            (b"general.alignment", U32, u32(32)),
            (b"a.bool", BOOL, b"\x01"),
            (b"a.float", F32, struct.pack("<f", 1.5)),
            (b"a.long", I64, struct.pack("<q", -5)),
            (b"a.ints", ARRAY, array(I32, 3, struct.pack("<3i", 1, -2, 3))),
            (b"a.words", ARRAY, array(STRING, 2, string(b"one") + string("zwölf".encode()))),
        ],
        tensors=[Tensor(b"first", (8, 2), nbytes=64), Tensor(b"second", (32, 4), T_Q8_0, nbytes=136)],
    )


def edited(
    source: Path,
    path: Path,
    keys: Mapping[str, tuple[Any, Any] | None] | None = None,
    tensors: Mapping[str, np.ndarray | None] | None = None,
    quantise: Mapping[str, gguf.GGMLQuantizationType] | None = None,
    **writer_options: Any,
) -> Path:
    """Copies a GGUF file with keys and tensors set (None removes one), or quantised. Returns `path`.

    A key is (type, value); the type of an array is (ARRAY, type of its elements).
    """
    reader = gguf.GGUFReader(source)
    changed = {key: None for key in reader.fields if key.startswith("GGUF.")} | dict(keys or {})
    writer = gguf.GGUFWriter(path, arch="", **writer_options)
    writer.kv_data[0].clear()
    for key, found in reader.fields.items():
        if key not in changed:
            _add(writer, key, found.types, found.contents())
    for key, new in changed.items():
        if new is not None:
            _add(writer, key, new[0] if isinstance(new[0], tuple) else (new[0],), new[1])
    arrays = {t.name: np.array(t.data) for t in reader.tensors} | dict(tensors or {})
    blocks = {t.name: t.tensor_type for t in reader.tensors if t.data.dtype == np.uint8}
    for name, data in arrays.items():
        if data is None:
            continue
        kind = (quantise or {}).get(name)
        packed = data if kind is None else gguf.quantize(data, kind)
        writer.add_tensor(name, packed, raw_dtype=kind or (blocks.get(name) if data.dtype == np.uint8 else None))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def _add(writer: gguf.GGUFWriter, key: str, kinds: Sequence[gguf.GGUFValueType], value: Any) -> None:
    if kinds[0] == gguf.GGUFValueType.ARRAY:
        writer.add_key_value(key, list(value), kinds[0], sub_type=kinds[-1])
    else:
        writer.add_key_value(key, value, kinds[0])


def endless(source: Path, path: Path) -> Path:
    """Copies a model to one whose text ends nowhere by itself, on any processor: no token is its end."""
    return edited(source, path, keys={"tokenizer.ggml.eos_token_id": None})


def in_f32(source: Path, path: Path) -> Path:
    """Copies a model to the same values, all in F32; whole numbers stay."""
    found = {
        tensor.name: gguf.dequantize(tensor.data, tensor.tensor_type).reshape(tensor.shape[::-1])
        for tensor in gguf.GGUFReader(source).tensors
        if tensor.tensor_type != gguf.GGMLQuantizationType.I32
    }
    return edited(source, path, tensors=found)
