"""Typed, checked access to the metadata of a GGUF file."""

from collections.abc import Mapping
from typing import TypeVar

from ds4py.errors import FormatError

T = TypeVar("T")

ADVICE = "the file is damaged or was converted wrongly; convert it again"


class Metadata:
    """The `tokenizer.*` keys of one file; every error is a FormatError that begins with the key."""

    def __init__(self, values: Mapping[str, object]) -> None:
        self._values = values

    def text(self, key: str) -> str | None:
        """Returns a string, or None if the key is absent."""
        return self._value(key, str)

    def flag(self, key: str) -> bool | None:
        """Returns a boolean, or None if the key is absent."""
        return self._value(key, bool)

    def token_id(self, key: str, vocab_size: int) -> int | None:
        """Returns a token id in [0, vocab_size), or None if the key is absent."""
        found = self._value(key, int)
        if found is not None and not 0 <= found < vocab_size:
            raise FormatError(f"{key}: token {found} is outside the vocabulary of {vocab_size} tokens; {ADVICE}")
        return found

    def strings(self, key: str) -> list[str] | None:
        """Returns a list of strings, or None if the key is absent."""
        return self._list(key, str)

    def integers(self, key: str) -> list[int] | None:
        """Returns a list of integers, or None if the key is absent."""
        return self._list(key, int)

    def _value(self, key: str, kind: type[T]) -> T | None:
        found = self._values.get(key)
        if found is not None and not is_a(found, kind):
            raise FormatError(f"{key}: found {type(found).__name__}, wanted {kind.__name__}; {ADVICE}")
        return found  # type: ignore[return-value]

    def _list(self, key: str, kind: type[T]) -> list[T] | None:
        found = self._values.get(key)
        if found is None:
            return None
        if not isinstance(found, list | tuple):
            raise FormatError(f"{key}: found {type(found).__name__}, wanted an array; {ADVICE}")
        for place, item in enumerate(found):
            if not is_a(item, kind):
                name = type(item).__name__
                raise FormatError(f"{key}[{place}]: found {name}, wanted {kind.__name__}; {ADVICE}")
        return list(found)


def is_a(value: object, kind: type) -> bool:
    """Returns whether a value has a type. A boolean does not count as an integer, unlike in Python."""
    return isinstance(value, kind) and (kind is bool or not isinstance(value, bool))
