"""Finds the common prefix of two sequences of token ids."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt


def common_prefix(a: Sequence[int] | npt.NDArray[np.int32], b: Sequence[int] | npt.NDArray[np.int32]) -> int:
    """Returns the number of leading tokens that two sequences of ids have in common."""
    n = min(len(a), len(b))
    differing = np.flatnonzero(np.asarray(a[:n]) != np.asarray(b[:n]))
    return int(differing[0]) if len(differing) else n
