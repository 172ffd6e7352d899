"""Makes metadata values with their GGUF types."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from gguf import GGUFValueType as Kind


@dataclass(frozen=True)
class Value:
    """A metadata value. `element` is the type of an array's elements."""

    value: Any
    kind: Kind
    element: Kind | None = None


Metadata = dict[str, Value]
"""The metadata of a file, in the order of its keys."""


def u32(value: int) -> Value:
    return Value(value, Kind.UINT32)


def f32(value: float) -> Value:
    return Value(value, Kind.FLOAT32)


def flag(value: bool) -> Value:
    return Value(value, Kind.BOOL)


def text(value: str) -> Value:
    return Value(value, Kind.STRING)


def array(values: Sequence[Any], element: Kind) -> Value:
    """Makes an array. Callers leave empty arrays out, because GGUF readers differ in how they read them."""
    return Value(list(values), Kind.ARRAY, element)
