"""The memory that a long prompt runs in does not follow its length."""

from __future__ import annotations

import gguf_tools as tools
import pytest

from ds4py import _native

pytestmark = pytest.mark.on_device


def scratch(length: int) -> int:
    """Bytes that the graphs at the end of a prompt run in; keys and weights left out."""
    (cpu,) = _native.memory_by_device(_native.GgufFile.open(tools.TARGET), context=length, device="cpu")
    return int(cpu.scratch)


def test_chunks_keep_their_width_and_their_masks_grow() -> None:
    found = [scratch(length) for length in (2000, 4000, 6600, 9000, 12_000)]
    assert found == sorted(found)
    assert found[-1] < 1.5 * found[0]


def test_chunks_get_narrower_where_masks_would_get_large() -> None:
    """Ten times the length; the graphs of single rows, which count too, read keys of all of it."""
    assert scratch(1_000_000) < 7 * scratch(100_000)
