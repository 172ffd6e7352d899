"""Makes the proposers: the pair's drafter, prompt lookup, or one of the two in each cycle."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from ds4py.speculative import Draft, Drafter, DraftRequest, DSparkDrafter, PromptLookupDrafter, TargetSession

EVIDENCE = 4
"""Tokens that must have occurred before, for a lookup to be preferred. It is the longest n-gram of a lookup."""


class LookupFirst:
    """Proposes by lookup if the last `EVIDENCE` tokens have occurred before, and else by the drafter.

    The choice depends on earlier tokens alone, so acceptance stays exact.
    """

    name = "both"

    def __init__(self) -> None:
        self._lookup = PromptLookupDrafter()
        self._drafter = DSparkDrafter()

    def propose(self, session: TargetSession, request: DraftRequest, width: int) -> Draft | None:
        """Returns the proposals of the proposer whose turn it is."""
        chosen: Drafter = self._lookup if recurs(session.history(), EVIDENCE) else self._drafter
        return chosen.propose(session, request, width)


def recurs(tokens: npt.NDArray[np.int32], size: int) -> bool:
    """Tells whether the last `size` tokens occur earlier among the tokens. The two may overlap."""
    if len(tokens) <= size:
        return False
    grams = np.lib.stride_tricks.sliding_window_view(tokens, size)
    return bool((grams[:-1] == grams[-1]).all(axis=1).any())


PROPOSERS: dict[str, Callable[[], Drafter]] = {
    "dspark": DSparkDrafter,
    "lookup": PromptLookupDrafter,
    "both": LookupFirst,
}
"""Functions that make a proposer for one generation, by the name in reports."""
