"""Divides documents into train and held-out parts, and cuts documents into pieces."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, field

COMMON_LINES = 0.3
"""The largest share of a held-out file's long lines that the training part may have. Others are dropped."""

LONG_LINE = 24


@dataclass
class Split:
    """The documents of one domain, in two parts."""

    train: list[str] = field(default_factory=list)
    heldout: list[str] = field(default_factory=list)


def rank(text: str) -> int:
    """Returns a number that depends on the content alone, whatever the machine and the order of files."""
    return int.from_bytes(hashlib.sha256(text.encode("utf-8", "replace")).digest()[:8], "big")


def share(texts: Iterable[str], characters: float) -> list[str]:
    """Returns a stable choice of documents without duplicates, up to `characters` characters."""
    taken, total = [], 0
    for text in sorted(set(texts), key=rank):
        if total + len(text) <= characters:
            taken.append(text)
            total += len(text)
    return taken


def by_file(texts: Iterable[str], fraction: float) -> Split:
    """Holds out whole documents by the hash of their content, and drops those close to a training document."""
    split = Split()
    for text in sorted(set(texts), key=rank):
        (split.heldout if rank(text + "#") < fraction * 2**64 else split.train).append(text)
    known = {line for text in split.train for line in long_lines(text)}
    split.heldout = [text for text in split.heldout if common(text, known) <= COMMON_LINES]
    return split


def long_lines(text: str) -> list[str]:
    """Returns the lines that are long enough to tell one text from another."""
    return [line for line in map(str.strip, text.splitlines()) if len(line) >= LONG_LINE]


def common(text: str, known: set[str]) -> float:
    """Returns the share of a text's long lines that are known."""
    lines = long_lines(text)
    return sum(line in known for line in lines) / max(1, len(lines))


def by_end(texts: Iterable[str], fraction: float) -> Split:
    """Holds out the last part of each document, from the beginning of a line on."""
    split = Split()
    for text in texts:
        at = text.rfind("\n", 0, int(len(text) * (1 - fraction))) + 1
        split.train.append(text[:at])
        split.heldout.append(text[at:])
    return split


def pieces(text: str, longest: int = 12_000) -> list[str]:
    """Cuts a text at line ends into pieces of at most `longest` characters. A longer line is cut inside."""
    cut, place = [], 0
    while place < len(text):
        end = min(len(text), place + longest)
        if end < len(text):
            end = text.rfind("\n", place, end) + 1 or end
        cut.append(text[place:end])
        place = end
    return cut
