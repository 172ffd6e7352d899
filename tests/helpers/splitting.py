"""A text in pieces, for what has to give the same whatever the pieces are."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import TypeVar

from hypothesis import strategies as st

Sliced = TypeVar("Sliced", str, list[int])


def pieces(text: Sliced, cuts: list[int]) -> list[Sliced]:
    """Cuts a text, or ids, at these places, in whatever order and however often they are named."""
    places = [0, *sorted(cuts), len(text)]
    return [text[a:b] for a, b in pairwise(places)]


def every_split(text: str) -> Iterator[list[str]]:
    """Returns all ways to cut a text once, and each character by itself."""
    for at in range(len(text) + 1):
        yield pieces(text, [at])
    yield list(text)


def random_cuts(longest: int = 400) -> st.SearchStrategy[list[int]]:
    """Draws places to cut at; those past the end cut nothing off."""
    return st.lists(st.integers(0, longest), max_size=12)
