"""Proposals of the model's own drafter."""

from __future__ import annotations

from typing import Literal

from ds4py.errors import RequestError
from ds4py.speculative.draft import Draft
from ds4py.speculative.request import DraftRequest
from ds4py.speculative.target import TargetSession

Proposals = Literal["sampled", "greedy"]


class DSparkDrafter:
    """Drafts with the DSpark drafter that the session's engine has loaded.

    Args:
        shortlist: candidates of each position, the likeliest before the Markov bias; 0 is the whole vocabulary, None
            is `default_shortlist`. q is a distribution over these, so the choice costs acceptance but never exactness.
        proposals: "sampled" draws each proposal from q, the request's own policy applied to the drafter's logits.
            "greedy" proposes the likeliest token, and q is 1 at it: better where the target is surer than the drafter.
            The same for greedy requests.

    Raises RequestError for an argument out of range; `propose` raises it when the engine has no drafter.
    """

    name = "dspark"

    def __init__(self, shortlist: int | None = None, proposals: Proposals = "sampled") -> None:
        if shortlist is not None and shortlist < 0:
            raise RequestError(f"draft_vocab is {shortlist}, wanted a number of candidates, or 0 for all")
        if proposals not in ("sampled", "greedy"):
            raise RequestError(f"proposals is {proposals!r}, wanted 'sampled' or 'greedy'")
        self.shortlist = shortlist
        self.proposals = proposals

    @property
    def priced_as(self) -> str:
        """The name of its costs, which depend on its settings."""
        default = self.shortlist is None and self.proposals == "sampled"
        return self.name if default else f"{self.name}, {self.shortlist} {self.proposals}"

    def propose(self, session: TargetSession, request: DraftRequest, width: int) -> Draft:
        """A whole block: what a shorter one would begin with differs, because its rows see each other."""
        if request.arg_max or self.proposals == "greedy":
            return session.draft(shortlist=self.shortlist)
        return session.draft(request.sampler, request.rng, shortlist=self.shortlist)
