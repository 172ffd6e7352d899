"""The protocol of a session with the target model, as speculative decoding uses it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from ds4py import _native
from ds4py.sampling import AnySampling
from ds4py.speculative.draft import Draft, Floats, Ids
from ds4py.speculative.drafter_info import DrafterInfo


class TargetSession(Protocol):
    """The state of one sequence of tokens in the target model; `ds4py.Session` is one.

    Attributes:
        warm: draft lengths and drafters whose graphs the session has built already.
    """

    warm: set[int | str]

    @property
    def position(self) -> int:
        """The number of positions in the state; the anchor comes next."""

    @property
    def anchor(self) -> int | None:
        """The token emitted last, which is not in the state yet; None where there is none."""

    @property
    def rewinds(self) -> int:
        """The number of rewinds, after which the text may be another than a longer one."""

    @property
    def drafter(self) -> DrafterInfo | None:
        """The properties of the engine's drafter; None without one."""

    @property
    def accepts_on_device(self) -> bool:
        """Whether the device has kernels that accept proposals."""

    def history(self, start: int = 0) -> Ids:
        """Returns every token from position `start` on, int32 [n], the anchor last."""

    def logits(self) -> Floats:
        """Returns the logits of what follows the last token, float32 [vocab]."""

    def sample(self, sampling: AnySampling, rng: _native.Rng) -> int:
        """Draws what follows the last token, without emitting it."""

    def draft(
        self, sampling: AnySampling | None = None, rng: _native.Rng | None = None, *, draft_vocab: int | None = None
    ) -> Draft:
        """Returns a block of the engine's drafter, for the positions after the anchor."""

    def verify(self, tokens: Sequence[int] | Ids = ()) -> Floats:
        """Returns the logits of the anchor and of the proposals after it, float32 [len(tokens) + 1, vocab]."""

    def verify_on_device(self, tokens: Sequence[int] | Ids = ()) -> None:
        """Does what `verify` does, but leaves the logits on the device, for `accept`."""

    def accept(self, draft: Draft, temperature: float, rng: _native.Rng) -> tuple[int, int]:
        """Accepts on the device: returns how many verified proposals are accepted, and the token after them."""
