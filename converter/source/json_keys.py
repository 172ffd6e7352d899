"""Reads JSON objects key by key. Errors name the file and the key."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ds4py.errors import FormatError


class Keys:
    """Typed access to the keys of a JSON object. Every error names the file and the key."""

    def __init__(self, path: Path, values: Mapping[str, Any]) -> None:
        self.path, self.values = path, values

    def fail(self, key: str, wanted: str) -> FormatError:
        """Makes the error for a value that is not as wanted."""
        found = json.dumps(self.values[key])[:80] if key in self.values else "missing"
        return FormatError(f"{self.path}: key '{key}' is {found}, wanted {wanted}")

    def has(self, key: str) -> bool:
        return self.values.get(key) is not None

    def integer(self, key: str, low: int = 1, high: int = 1 << 31) -> int:
        """Returns a whole number in [low, high]."""
        value = self.values.get(key)
        if type(value) is not int or not low <= value <= high:
            raise self.fail(key, f"a whole number from {low} to {high}")
        return value

    def number(self, key: str) -> float:
        """Returns a finite number above 0."""
        value = self.values.get(key)
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or value <= 0:
            raise self.fail(key, "a number above 0")
        return float(value)

    def part(self, key: str) -> Keys:
        """Returns the keys of a nested object. There are none if it is missing."""
        value = self.values.get(key)
        if value is not None and not isinstance(value, dict):
            raise self.fail(key, "an object")
        return Keys(self.path, value or {})

    def integers(self, key: str) -> tuple[int, ...]:
        """Returns a list of whole numbers from 0 on."""
        value = self.values.get(key)
        if not isinstance(value, list) or not all(type(each) is int and each >= 0 for each in value):
            raise self.fail(key, "a list of whole numbers")
        return tuple(value)

    def exactly(self, key: str, wanted: Any) -> None:
        """Raises FormatError if the key has another value than `wanted`. A missing key is accepted."""
        if self.has(key) and self.values[key] != wanted:
            raise self.fail(key, json.dumps(wanted))


def load(path: Path) -> dict[str, Any]:
    """Reads a JSON object from a file. Raises FormatError naming the file."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise FormatError(f"{path}: not JSON ({error}); download it again") from None
    if not isinstance(found, dict):
        raise FormatError(f"{path}: not a JSON object")
    return found
