"""Protocols of the sessions that generations run in."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Protocol

from ds4py.generation.options import GenerationOptions
from ds4py.generation.piece import Piece
from ds4py.generation.stats import Stats
from ds4py.prefix_cache.protocols import CachedSession, Ids, Progress
from ds4py.speculative import Costs, PromptLookupDrafter, TargetSession
from ds4py.tokenizer import Tokenizer

if TYPE_CHECKING:
    from typing_extensions import Unpack


class GenerationSession(TargetSession, Protocol):
    """A session whose state a generation extends; `ds4py.Session` is one.

    Attributes:
        tokenizer: the tokenizer of the model.
        costs: measured times of cycles, to which the generation adds.
        lookup: the drafter that proposes from the session's own tokens.
        stats: counts and times of the latest request.
    """

    tokenizer: Tokenizer
    costs: Costs
    lookup: PromptLookupDrafter
    stats: Stats

    @property
    def exclusive(self) -> AbstractContextManager[None]:
        """A context to hold while the state changes; entering it raises RequestError if another thread holds it."""

    @property
    def context(self) -> int:
        """The positions that the session can hold."""

    @property
    def length(self) -> int:
        """The number of tokens so far, the anchor included."""

    @property
    def anchor(self) -> int | None:
        """The token emitted last, which is not in the state yet; None where there is none."""

    @anchor.setter
    def anchor(self, token: int | None) -> None: ...

    def prefill(
        self, tokens: Sequence[int] | Ids, *, progress: Progress | None = None, checkpoints: Sequence[int] = ()
    ) -> None:
        """Extends the state by a prompt."""

    def commit(self, accepted: int, token: int | None) -> None:
        """Puts the anchor and the first `accepted` proposals into the state; `token` is the next anchor."""

    def rewind(self, position: int, *, progress: Progress | None = None) -> None:
        """Shortens the state to `position`."""

    def clear_cancel(self) -> None:
        """Withdraws a cancel that no call has responded to yet."""


class AnsweringSession(CachedSession, Protocol):
    """A session that a stream borrows for one answer; `ds4py.Session` is one."""

    @property
    def stats(self) -> Stats:
        """Counts and times of the latest request."""

    def generate(
        self,
        prompt: str | Sequence[int] | Ids = (),
        *,
        checkpoints: Sequence[int] = (),
        progress: Progress | None = None,
        **options: Unpack[GenerationOptions],
    ) -> Iterator[Piece]:
        """Extends the state by `prompt` and yields what follows it."""

    def cancel(self) -> None:
        """Stops the running call; any thread may call it."""
