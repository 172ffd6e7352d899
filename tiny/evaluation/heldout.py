"""Reads held-out text, the token streams of the five domains, and cuts prompts and windows from it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt

from ds4py.errors import FormatError
from tiny.config import BOS, EOS

Stream = npt.NDArray[np.int32]
Places = npt.NDArray[np.int64]


def read(work: Path, domain: str, vocab: int) -> Stream:
    """Reads the tokens of `data/heldout_{domain}.bin` (little-endian uint16) as int32 [n].

    Raises FormatError if the file is missing, is cut inside a token, or holds ids outside a vocabulary of `vocab`
    tokens.
    """
    path = work / "data" / f"heldout_{domain}.bin"
    if not path.is_file():
        raise FormatError(
            f"{path}: not there; wanted the held-out tokens of {domain!r}: build the corpus in {work} first"
        )
    if path.stat().st_size % 2:
        raise FormatError(f"{path}: {path.stat().st_size} bytes are no whole number of uint16 tokens: build it again")
    stream = np.fromfile(path, dtype="<u2").astype(np.int32)
    if stream.size and stream.max() >= vocab:
        raise FormatError(
            f"{path}: holds token {stream.max()}, but the target has {vocab}: they are of different tokenizers"
        )
    return stream


def prompts(stream: Stream, domain: str, count: int, length: int) -> list[list[int]]:
    """Cuts `count` prompts of `length` tokens, spread evenly, each inside one piece of text.

    They begin where a piece does. If there are too few pieces, further prompts begin inside pieces. Raises FormatError
    if that is not enough either.
    """
    first, inner = places(stream, length)
    if len(first) + len(inner) < count:
        raise FormatError(
            f"the held-out text of {domain!r} has {len(first) + len(inner)} places for a prompt of {length} tokens, "
            f"wanted {count}: build a larger corpus, or ask for fewer prompts"
        )
    begun = min(count, len(first))
    starts = np.sort(np.append(spread(first, begun), spread(inner, count - begun)))
    return [stream[start : start + length].tolist() for start in starts]


def places(stream: Stream, length: int) -> tuple[Places, Places]:
    """Returns the places where `length` tokens of one piece begin: with its BOS, and inside it. EOS ends a document."""
    marks = np.append(0, np.cumsum((stream == BOS) | (stream == EOS)))
    start = np.arange(max(0, len(stream) - length + 1))
    whole = marks[start + length] == marks[start + 1]
    begins = stream[start] == BOS
    inside = marks[start + length] == marks[start]
    return start[whole & begins], start[whole & inside]


def windows(stream: Stream, domain: str, count: int, length: int) -> list[Stream]:
    """Cuts at most `count` windows of `length` tokens and the one after them, spread evenly.

    No token is predicted twice. Raises FormatError if there is not one window.
    """
    whole = np.arange(0, len(stream) - length, length)
    if not len(whole):
        raise FormatError(
            f"the held-out text of {domain!r} has {len(stream)} tokens, wanted {length + 1} or more: "
            "build a larger corpus"
        )
    return [stream[start : start + length + 1] for start in spread(whole, min(count, len(whole)))]


def spread(values: Places, count: int) -> Places:
    """Chooses `count` of the values, from the first to the last, or all if there are fewer."""
    return values[np.linspace(0, len(values) - 1, count).round().astype(int)] if count else values[:0]
