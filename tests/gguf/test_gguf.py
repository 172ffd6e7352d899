"""The GGUF reader: what it reads, and what it says of files that are something else.

The many cases of damage and the sets of shards are in test_gguf_damage.py and test_gguf_split.py.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import gguf
import gguf_tools as tools
import numpy as np
import pytest

from ds4py import _native
from ds4py.errors import FormatError

pytestmark = pytest.mark.fast

Write = Callable[[bytes], Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def write(data: bytes) -> Path:
        path = tmp_path / "model.gguf"
        path.write_bytes(data)
        return path

    return write


@pytest.mark.parametrize("version", [2, 3])
def test_reads_every_kind_of_value(write: Write, version: int) -> None:
    draft = tools.small()
    draft.version = tools.u32(version)
    path = write(draft.build())
    file = _native.GgufFile.open(path)
    assert file.version == version
    assert file.paths == [str(path)]
    assert file.file_bytes == path.stat().st_size
    assert file.metadata() == {
        "general.architecture": "deepseek4",
        "general.alignment": 32,
        "a.bool": True,
        "a.float": 1.5,
        "a.long": -5,
        "a.ints": [1, -2, 3],
        "a.words": ["one", "zwölf"],
    }
    first, second = file.tensors()
    assert (first.name, first.type, first.shape, first.nbytes, first.shard) == ("first", "F32", (8, 2), 64, 0)
    assert tuple(second) == ("second", "Q8_0", (32, 4), 136, 0)


def test_agrees_with_the_gguf_package() -> None:
    file = _native.GgufFile.open(tools.TARGET)
    reader = gguf.GGUFReader(tools.TARGET)
    wanted = {key: found.contents() for key, found in reader.fields.items() if not key.startswith("GGUF.")}
    assert file.metadata() == wanted
    tensors = [(t.name, t.tensor_type.name, tuple(map(int, t.shape)), t.n_bytes, 0) for t in reader.tensors]
    assert [tuple(tensor) for tensor in file.tensors()] == tensors


def test_other_types_and_alignments(tmp_path: Path) -> None:
    data = np.ones((4, 64), np.float32)
    writer = gguf.GGUFWriter(tmp_path / "types.gguf", "deepseek4")
    writer.add_custom_alignment(256)
    kinds = ["F16", "BF16", "Q4_0", "Q8_0"]
    for kind in kinds:
        number = gguf.GGMLQuantizationType[kind]
        writer.add_tensor(kind.lower(), gguf.quantize(data, number), raw_dtype=number)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    file = _native.GgufFile.open(tmp_path / "types.gguf")
    assert [tensor.type for tensor in file.tensors()] == kinds
    assert {tensor.shape for tensor in file.tensors()} == {(64, 4)}


def test_text_that_is_not_utf8_is_shown_escaped(write: Write) -> None:
    draft = tools.small()
    draft.keys.append((b"bad", tools.STRING, tools.string(b"ok \xff")))
    assert _native.GgufFile.open(write(draft.build())).metadata()["bad"] == "ok \\xff"


def test_a_path_of_any_characters_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "模型 'ä'.gguf"
    path.write_bytes(tools.small().build())
    assert _native.GgufFile.open(str(path)).paths == [str(path)]
    path.write_bytes(b"GGUF")
    with pytest.raises(FormatError, match="模型 'ä'"):
        _native.GgufFile.open(path)


def test_a_path_that_is_not_utf8_gives_a_readable_error(tmp_path: Path) -> None:
    path = os.fsencode(tmp_path) + b"/\xff.gguf"
    with pytest.raises(FormatError, match=r"\\xff\.gguf: cannot be opened"):
        _native.GgufFile.open(os.fsdecode(path))


def test_missing_file(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match=r"absent\.gguf: cannot be opened"):
        _native.GgufFile.open(tmp_path / "absent.gguf")


def test_directory(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match=r"is a directory.*deepseek4-quantize"):
        _native.GgufFile.open(tmp_path)


def test_named_pipe_does_not_hang(tmp_path: Path) -> None:
    path = tmp_path / "pipe.gguf"
    os.mkfifo(path)
    with pytest.raises(FormatError, match="not a regular file"):
        _native.GgufFile.open(path)


def test_no_permission(write: Write) -> None:
    path = write(tools.small().build())
    path.chmod(0)
    superuser = os.geteuid() == 0
    if superuser:  # who may read everything, so this is tried as nobody
        os.seteuid(65534)
    try:
        with pytest.raises(FormatError, match="cannot be opened: Permission denied"):
            _native.GgufFile.open(path)
    finally:
        if superuser:
            os.seteuid(0)


LOOKS = {
    "safetensors": (tools.u64(2) + b"{}" + bytes(40), "safetensors"),
    "zip": (b"PK\x03\x04" + bytes(40), "PyTorch"),
    "pickle": (b"\x80\x02}q\x00" + bytes(40), "pickle"),
    "gzip": (b"\x1f\x8b\x08" + bytes(40), "unpack"),
    "zstd": (b"\x28\xb5\x2f\xfd" + bytes(40), "unpack"),
    "ggjt": (b"tjgg" + bytes(40), "before GGUF"),
    "other byte order": (b"FUGG" + bytes(40), "byte order"),
    "lfs pointer": (b"version https://git-lfs/spec/v1\noid sha256:0\n", "git lfs pull"),
    "web page": (b"<!DOCTYPE html><html></html>", "web page"),
    "json": (b'{"architectures": []}', "JSON"),
    "zeros": (bytes(64), "unfinished download"),
    "text": (b"hello world, I am no model", "begins with 'hell'"),
    "one byte": (b"G", "begins with 'G'"),
}


@pytest.mark.parametrize("data, hint", LOOKS.values(), ids=LOOKS)
def test_says_what_another_file_looks_like(write: Write, data: bytes, hint: str) -> None:
    with pytest.raises(FormatError, match=hint) as error:
        _native.GgufFile.open(write(data))
    assert "wanted a GGUF file" in str(error.value)
