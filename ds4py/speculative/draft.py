"""The proposals of one cycle, with the distributions that they were drawn from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from ds4py.deprecated import renamed_attributes

Floats = npt.NDArray[np.float32]
Ids = npt.NDArray[np.int32]


@dataclass(frozen=True)
class DeviceQ:
    """A device-resident q, [k, vocab]: it stays on the device that drew from it until the session's next draft (D29).

    Attributes:
        number: the number of the draft in its session.
        temperature: the temperature of the policy, which has nothing else.
        reader: copies q of a draft's number to the host, float32 [k, vocab]; raises RequestError when it is gone.
    """

    number: int
    temperature: float
    reader: Callable[[int], Floats]

    @cached_property
    def probs(self) -> Floats:
        """All rows, float32 [k, vocab]; they are copied to the host once."""
        return self.reader(self.number)


class Draft:
    """Proposals for what follows the anchor, each with the distribution q that it was drawn from.

    Args:
        tokens: the proposals, int32 [k].
        q_probs: q at the candidates, float32 [k, candidates], in rows that sum to 1; or a device-resident q. It has to
            be the q that the proposals were drawn from: acceptance is exact for that q only.
        q_ids: the token id of each column, int32 [k, candidates]; None where the columns are the whole vocabulary.
        confidence: the probability that each proposal is accepted, given that those before it are, float32 [k]; None
            where the drafter has no confidence head. Draft lengths follow from it, so confidence[i] must not depend on
            tokens[i] or on later ones where these are drawn (docs/dspark.md section 3.7).
    """

    if not TYPE_CHECKING:
        __getattr__ = renamed_attributes({"held": "device_q"})

    def __init__(
        self, tokens: Ids, q_probs: Floats | DeviceQ, q_ids: Ids | None = None, confidence: Floats | None = None
    ) -> None:
        self.tokens = tokens
        self.q_ids = q_ids
        self.confidence = confidence
        self._q = q_probs

    @classmethod
    def point_mass(cls, tokens: Sequence[int] | Ids, confidence: Floats | None = None) -> Draft:
        """Makes a draft of proposals that were chosen without drawing: q is 1 at each of them."""
        ids = np.asarray(tokens, dtype=np.int32)
        return cls(ids, np.ones((len(ids), 1), np.float32), ids[:, None], confidence)

    @property
    def q_probs(self) -> Floats:
        """q at the candidates, float32 [k, candidates]; a device-resident q is copied to the host.

        Raises RequestError where the session has drafted again since.
        """
        return self._q.probs[: len(self)] if isinstance(self._q, DeviceQ) else self._q

    @property
    def device_q(self) -> DeviceQ | None:
        """The device-resident q; None where q is on the host."""
        return self._q if isinstance(self._q, DeviceQ) else None

    @property
    def is_point_mass(self) -> bool:
        """Whether q is 1 at each proposal."""
        return self.q_ids is not None and self.q_ids.shape[1] == 1

    def __len__(self) -> int:
        return len(self.tokens)

    def first(self, k: int) -> Draft:
        """Returns a draft of the first k proposals, or of all where there are fewer."""
        if k >= len(self.tokens):
            return self
        ids, confidence = self.q_ids, self.confidence
        return Draft(
            self.tokens[:k],
            self.device_q or self.q_probs[:k],
            None if ids is None else ids[:k],
            None if confidence is None else confidence[:k],
        )
