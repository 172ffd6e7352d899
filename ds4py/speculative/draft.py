"""The proposals of one cycle, with the distributions that they were drawn from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32]
Ids = npt.NDArray[np.int32]


@dataclass(frozen=True)
class HeldQ:
    """q of a draft that is still on the device which drew from it, [k, vocab], until the session's next draft.

    Attributes:
        number: of the draft.
        temperature: of the policy, which has nothing else.
        reader: brings q of a number here; RequestError when it is gone.
    """

    number: int
    temperature: float
    reader: Callable[[int], Floats]

    @cached_property
    def probs(self) -> Floats:
        """All rows; they stay here once they were asked for."""
        return self.reader(self.number)


class Draft:
    """Proposals for what follows the anchor, each with the distribution q that it was drawn from.

    Args:
        tokens: int32 [k].
        q_probs: float32 [k, width], rows that sum to 1. It has to be the truth: acceptance is exact for any q, but only
            for the q that the proposals came from. Or one that is still on a device.
        q_ids: int32 [k, width], the token of each column; None where q_probs is over the whole vocabulary.
        confidence: float32 [k], the drafter's P(accepted | those before it are); None where it has no such head. Widths
            go by it, so that confidence[i] must not depend on tokens[i] or later ones where these are drawn.
    """

    def __init__(
        self, tokens: Ids, q_probs: Floats | HeldQ, q_ids: Ids | None = None, confidence: Floats | None = None
    ) -> None:
        self.tokens = tokens
        self.q_ids = q_ids
        self.confidence = confidence
        self._q = q_probs

    @classmethod
    def point_mass(cls, tokens: Sequence[int] | Ids, confidence: Floats | None = None) -> Draft:
        """Proposals that were chosen without drawing: q is 1 at each of them."""
        ids = np.asarray(tokens, dtype=np.int32)
        return cls(ids, np.ones((len(ids), 1), np.float32), ids[:, None], confidence)

    @property
    def q_probs(self) -> Floats:
        """As above. RequestError where it was left on the device until the session drafted again."""
        return self._q.probs[: len(self)] if isinstance(self._q, HeldQ) else self._q

    @property
    def held(self) -> HeldQ | None:
        """q where it was left on the device."""
        return self._q if isinstance(self._q, HeldQ) else None

    @property
    def is_point_mass(self) -> bool:
        """Whether q is 1 at each proposal."""
        return self.q_ids is not None and self.q_ids.shape[1] == 1

    def __len__(self) -> int:
        return len(self.tokens)

    def first(self, k: int) -> Draft:
        """The first k proposals, fewer where there are fewer."""
        if k >= len(self.tokens):
            return self
        ids, confidence = self.q_ids, self.confidence
        return Draft(
            self.tokens[:k],
            self.held or self.q_probs[:k],
            None if ids is None else ids[:k],
            None if confidence is None else confidence[:k],
        )
