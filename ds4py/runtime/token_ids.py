"""Token ids as the core takes them: int32 arrays."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from ds4py.errors import RequestError

TokenIds = Sequence[int] | npt.NDArray[np.int32]
"""Token ids as callers give them."""


def token_ids(tokens: TokenIds) -> npt.NDArray[np.int32]:
    """Converts ids to int32 [n]. Raises RequestError for anything but a list of whole numbers in range.

    Whether an id is in the vocabulary is for the core to check.
    """
    ids = np.asarray(tokens)
    if ids.ndim != 1:
        raise RequestError(f"tokens have {ids.ndim} dimensions, wanted a list of ids")
    if ids.dtype == np.int32:
        return ids
    if ids.size and (ids.dtype.kind not in "iu" or ids.min() < 0 or ids.max() > np.iinfo(np.int32).max):
        raise RequestError(f"tokens hold {ids.dtype} values from {ids.min()} to {ids.max()}, wanted token ids")
    return ids.astype(np.int32)


def joined_ids(first: TokenIds, then: TokenIds) -> npt.NDArray[np.int32]:
    """Concatenates ids, int32 [len(first) + len(then)]; for a few ids faster than numpy's own."""
    ids = np.empty(len(first) + len(then), np.int32)
    ids[: len(first)] = first
    ids[len(first) :] = then
    return ids
