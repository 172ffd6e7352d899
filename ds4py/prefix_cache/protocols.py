"""Protocols of the engine and the sessions that the prefix cache works with."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Literal, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from typing_extensions import Self

Ids = npt.NDArray[np.int32]
"""Token ids, int32 [n]."""

Progress = Callable[[int, int], None]
"""Called with the tokens that are done and all that there are to do; what it raises stops the work."""


class Cancellation(Protocol):
    """Says whether a request is to stop; `ds4py.generation.Cancel` does."""

    def check(self) -> None:
        """Raises Cancelled where somebody has asked the request to stop."""


class CachedSession(Protocol):
    """A session whose state the cache rewinds, copies and saves; `ds4py.Session` is one."""

    @property
    def position(self) -> int:
        """The number of positions in the state."""

    def history(self, start: int = 0) -> Ids:
        """Every token from position `start` on, int32 [n], the one emitted last included."""

    def resume_point(self, position: int) -> int:
        """The position from which the session evaluates again to go back to `position`."""

    def rewind(self, position: int, *, progress: Progress | None = None) -> None:
        """Shortens the state to `position`."""

    def copy_from(self, source: Self, position: int, *, progress: Progress | None = None) -> None:
        """Becomes what `source` was at `position`."""

    def save(self, path: str | os.PathLike[str], *, checkpoints: Sequence[int] = ()) -> None:
        """Writes the state to a file, with those of the checkpoints that the session has."""

    def clear_cancel(self) -> None:
        """Takes back a cancel that no call has answered yet."""

    def close(self) -> None:
        """Frees the state."""


SessionT = TypeVar("SessionT", bound=CachedSession)
SessionT_co = TypeVar("SessionT_co", bound=CachedSession, covariant=True)


class SessionFactory(Protocol[SessionT_co]):
    """Opens and loads sessions of one model; `ds4py.Engine` does."""

    @property
    def default_context(self) -> int:
        """The positions of a session where no number is given."""

    @property
    def identity(self) -> Mapping[str, str | int]:
        """The properties that a saved session depends on: model, drafter, device, threads and build."""

    def session(self, *, context: int | None = None, kv_dtype: Literal["f16", "f32"] = "f16") -> SessionT_co:
        """Opens a session of `context` positions."""

    def load_session(self, path: str | os.PathLike[str], *, context: int | None = None) -> SessionT_co:
        """Opens the session that was saved to a file, with `context` positions."""
