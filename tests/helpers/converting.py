"""Runs `deepseek4-quantize` in this process, and reads what it wrote."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gguf
import numpy as np

from ds4py.converter.cli import main


def convert(source: Path, output: Path, *flags: object) -> Path:
    """Converts quietly; returns the output."""
    assert main([str(source), str(output), "--quiet", *map(str, flags)]) == 0
    return output


def tensors(path: Path) -> dict[str, gguf.ReaderTensor]:
    """Returns the tensors by name, read by the format's own library."""
    return {tensor.name: tensor for tensor in gguf.GGUFReader(path).tensors}


def metadata(path: Path) -> dict[str, Any]:
    """Returns the keys with plain values."""
    return {key: field.contents() for key, field in gguf.GGUFReader(path).fields.items()}


def assert_same(found: Path, wanted: Path) -> None:
    """Asserts that the tensors are the same, to the byte."""
    mine, its = tensors(found), tensors(wanted)
    assert mine.keys() == its.keys()
    for name in its:
        assert mine[name].tensor_type == its[name].tensor_type, name
        assert mine[name].shape.tolist() == its[name].shape.tolist(), name
        assert np.array_equal(mine[name].data, its[name].data), name
