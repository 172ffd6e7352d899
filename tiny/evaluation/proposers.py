"""Who proposes: the pair's drafter, prompt lookup, or one of the two in each cycle."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from ds4py.speculative import Draft, Drafter, DraftRequest, DSparkDrafter, PromptLookupDrafter, TargetSession

EVIDENCE = 4
"""Tokens that have to have occurred before, for a lookup to be preferred to the drafter: the longest it looks for."""


class LookupFirst:
    """Proposes by lookup where the last `EVIDENCE` tokens have occurred before, else by the drafter.

    Which one depends on the tokens so far alone, so that acceptance stays exact.
    """

    name = "both"

    def __init__(self) -> None:
        self._lookup = PromptLookupDrafter()
        self._drafter = DSparkDrafter()

    def propose(self, session: TargetSession, request: DraftRequest, draft_length: int) -> Draft | None:
        """The proposals of the one whose turn it is."""
        chosen: Drafter = self._lookup if recurs(session.history(), EVIDENCE) else self._drafter
        return chosen.propose(session, request, draft_length)


def recurs(tokens: npt.NDArray[np.int32], size: int) -> bool:
    """Whether the last `size` of the tokens occur earlier among them; the two may overlap."""
    if len(tokens) <= size:
        return False
    grams = np.lib.stride_tricks.sliding_window_view(tokens, size)
    return bool((grams[:-1] == grams[-1]).all(axis=1).any())


PROPOSERS: dict[str, Callable[[], Drafter]] = {
    "dspark": DSparkDrafter,
    "lookup": PromptLookupDrafter,
    "both": LookupFirst,
}
"""Makes a proposer for one generation, by the name it is reported under."""
