"""A matrix that is read a few rows at a time, whatever it is stored as."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from gguf import GGMLQuantizationType as Type
from numpy.typing import NDArray

from ds4py.errors import FormatError

from .. import quantise
from .safetensors import Shard, StoredTensor


class Rows(Protocol):
    """What every stored format offers."""

    @property
    def name(self) -> str:
        """The tensor's name where it comes from, for messages."""

    @property
    def rows(self) -> int: ...

    @property
    def columns(self) -> int: ...

    @property
    def kind(self) -> Type | None:
        """The ggml type whose bytes `blocks` gives without any loss, or None where there is none."""

    def blocks(self, first: int, count: int) -> NDArray[np.uint8]:
        """The bytes of `count` rows as `kind`."""

    def floats(self, first: int, count: int) -> NDArray[np.float32]:
        """`count` rows as [count, columns]."""


FLOAT_DTYPES = {"F32": Type.F32, "F16": Type.F16, "BF16": Type.BF16}
"""safetensors dtypes that ggml has, too."""


class GgmlRows:
    """Rows that are stored as a ggml type: plain floats of a checkpoint, or any tensor of a GGUF file."""

    def __init__(self, name: str, shard: Shard, offset: int, kind: Type, rows: int, columns: int) -> None:
        self.name, self.rows, self.columns = name, rows, columns
        self.kind: Type | None = kind
        self._shard, self._offset, self._stored_as = shard, offset, kind
        self._row_bytes = quantise.row_bytes(kind, columns)

    def blocks(self, first: int, count: int) -> NDArray[np.uint8]:
        """As Rows.blocks. Raises FormatError for values (or block scales) that are not finite."""
        data = self._shard.read(self._offset + first * self._row_bytes, count * self._row_bytes)
        if not quantise.is_finite(self._stored_as, data):
            raise not_finite(self.name)
        return data

    def floats(self, first: int, count: int) -> NDArray[np.float32]:
        """As Rows.floats."""
        data = self._shard.read(self._offset + first * self._row_bytes, count * self._row_bytes)
        return quantise.dequantise(self._stored_as, data, self.columns)


class TokenMapRows:
    """The routing table of a hash layer: expert ids, I64 in checkpoints and I32 in GGUF. [vocab, experts used]."""

    def __init__(self, entry: StoredTensor, experts: int) -> None:
        self.name = entry.name
        self.rows, self.columns = entry.shape
        self.kind: Type | None = Type.I32
        self._entry, self._experts = entry, experts

    def blocks(self, first: int, count: int) -> NDArray[np.uint8]:
        """As Rows.blocks. Raises FormatError for an expert that does not exist: kernels would read out of bounds."""
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
        """A table of ids has no values."""
        raise TypeError(f"{self.name} is a table of ids")


class ZeroRows:
    """A vector that a contract wants and the checkpoint does not have."""

    def __init__(self, name: str, columns: int) -> None:
        self.name, self.rows, self.columns = name, 1, columns
        self.kind: Type | None = Type.F32

    def blocks(self, first: int, count: int) -> NDArray[np.uint8]:
        """As Rows.blocks."""
        return np.zeros(4 * count * self.columns, np.uint8)

    def floats(self, first: int, count: int) -> NDArray[np.float32]:
        """As Rows.floats."""
        return np.zeros((count, self.columns), np.float32)


def not_finite(name: str) -> FormatError:
    """The error for a tensor with NaN or infinite values."""
    return FormatError(f"tensor '{name}' holds values that are not finite; the file is damaged, download it again")
