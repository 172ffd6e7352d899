"""The memory that a long prompt runs in does not follow its length."""

from __future__ import annotations

import gguf_tools as tools

from ds4py import _native


def scratch(length: int) -> int:
    """Bytes that the last chunk of a prompt runs in, which reads the most; keys and weights left out."""
    return int(_native.memory_needed(_native.GgufFile.open(tools.TARGET), length)["scratch"])


def test_chunks_keep_their_width_and_their_masks_grow() -> None:
    found = [scratch(length) for length in (2000, 4000, 6600, 9000, 12_000)]
    assert found == sorted(found)
    assert found[-1] < 1.5 * found[0]


def test_chunks_get_narrower_where_masks_would_get_large() -> None:
    assert scratch(1_000_000) < 4 * scratch(100_000)
