"""How far a session already holds a prompt."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from ds4py.session import Session

Ids = npt.NDArray[np.int32]


def common_prefix(a: Sequence[int] | Ids, b: Sequence[int] | Ids) -> int:
    """How many tokens two sequences begin with alike."""
    n = min(len(a), len(b))
    differing = np.flatnonzero(np.asarray(a[:n]) != np.asarray(b[:n]))
    return int(differing[0]) if len(differing) else n


class Lent:
    """A caller's own session for one request; it stays the caller's."""

    def __init__(self, session: Session, ids: Ids) -> None:
        self.session = session
        self.cached_tokens = resume(session, ids)

    def __enter__(self) -> Lent:
        return self

    def __exit__(self, *_: object) -> None:
        pass


def resume(session: Session, ids: Ids) -> int:
    """Goes back to where `session` last agrees with `ids`; returns how many of them it then holds.

    Never all of them: the last is evaluated again, since what follows it is asked for. The token emitted last counts
    as held. Raises Cancelled where tokens before that place must be evaluated again.
    """
    kept = min(common_prefix(session.history(), ids), len(ids) - 1)
    if kept <= session.position:
        session.rewind(kept)
    return kept
