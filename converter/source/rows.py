"""Reads a matrix a few rows at a time, in any stored format."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from gguf import GGMLQuantizationType as Type
from numpy.typing import NDArray

from ds4py.errors import FormatError

from .. import quantise
from .safetensors import Shard, StoredTensor


class Rows(Protocol):
    """A matrix that can be read row by row. Every stored format implements this protocol."""

    @property
    def name(self) -> str:
        """The name of the tensor in its source, for messages."""

    @property
    def rows(self) -> int: ...

    @property
    def columns(self) -> int: ...

    @property
    def kind(self) -> Type | None:
        """The ggml type of the bytes that `blocks` returns without loss, or None if ggml has no such type."""

    def blocks(self, first: int, count: int) -> NDArray[np.uint8]:
        """Returns the bytes of `count` rows from row `first` on, as `kind`."""

    def floats(self, first: int, count: int) -> NDArray[np.float32]:
        """Returns `count` rows from row `first` on as [count, columns]."""


FLOAT_DTYPES = {"F32": Type.F32, "F16": Type.F16, "BF16": Type.BF16}
"""The safetensors dtypes that are ggml types, too."""


class GgmlRows:
    """Rows that are stored in a ggml type: plain floats of a checkpoint, or any tensor of a GGUF file."""

    def __init__(self, name: str, shard: Shard, offset: int, kind: Type, rows: int, columns: int) -> None:
        self.name, self.rows, self.columns = name, rows, columns
        self.kind: Type | None = kind
        self._shard, self._offset, self._stored_as = shard, offset, kind
        self._row_bytes = quantise.row_bytes(kind, columns)

    def blocks(self, first: int, count: int) -> NDArray[np.uint8]:
        """Returns the stored bytes. Raises FormatError for values or block scales that are not finite."""
        data = self._shard.read(self._offset + first * self._row_bytes, count * self._row_bytes)
        if not quantise.is_finite(self._stored_as, data):
            raise not_finite(self.name)
        return data

    def floats(self, first: int, count: int) -> NDArray[np.float32]:
        """Returns the dequantised values as [count, columns]."""
        data = self._shard.read(self._offset + first * self._row_bytes, count * self._row_bytes)
        return quantise.dequantise(self._stored_as, data, self.columns)


class TokenMapRows:
    """The routing table [vocab, experts used] of a hash layer. Expert ids are I64 in checkpoints, I32 in GGUF."""

    def __init__(self, entry: StoredTensor, experts: int) -> None:
        self.name = entry.name
        self.rows, self.columns = entry.shape
        self.kind: Type | None = Type.I32
        self._entry, self._experts = entry, experts

    def blocks(self, first: int, count: int) -> NDArray[np.uint8]:
        """Returns the ids as I32. Raises FormatError for an expert that does not exist.

        A kernel would read out of bounds with such an id.
        """
        dtype = np.dtype("<i8" if self._entry.dtype == "I64" else "<i4")
        size = self.columns * dtype.itemsize
        ids = self._entry.shard.read(self._entry.offset + first * size, count * size).view(dtype)
        ids = ids.reshape(count, self.columns)
        bad = ((ids < 0) | (ids >= self._experts)).any(axis=1)
        if bad.any():
            token = int(np.argmax(bad))
            raise FormatError(
                f"tensor '{self.name}' sends token {first + token} to experts {ids[token].tolist()}, wanted 0 to "
                f"{self._experts - 1}"
            )
        return ids.astype("<i4").view(np.uint8).ravel()

    def floats(self, first: int, count: int) -> NDArray[np.float32]:
        """Raises TypeError, because ids are not values."""
        raise TypeError(f"{self.name} is a table of ids")


class ZeroRows:
    """A vector of zeros that a contract needs and the checkpoint does not have."""

    def __init__(self, name: str, columns: int) -> None:
        self.name, self.rows, self.columns = name, 1, columns
        self.kind: Type | None = Type.F32

    def blocks(self, first: int, count: int) -> NDArray[np.uint8]:
        """Returns zeros as bytes of F32."""
        return np.zeros(4 * count * self.columns, np.uint8)

    def floats(self, first: int, count: int) -> NDArray[np.float32]:
        """Returns zeros as [count, columns]."""
        return np.zeros((count, self.columns), np.float32)


def not_finite(name: str) -> FormatError:
    """Makes the error for a tensor with NaN or infinite values."""
    return FormatError(f"tensor '{name}' holds values that are not finite; the file is damaged, download it again")
