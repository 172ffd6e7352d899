"""The drafter that asks the engine's DSpark model for proposals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from ds4py.deprecated import renamed_arguments, renamed_attributes
from ds4py.errors import RequestError
from ds4py.speculative.draft import Draft
from ds4py.speculative.request import DraftRequest
from ds4py.speculative.target import TargetSession

Proposals = Literal["sampled", "greedy"]


class DSparkDrafter:
    """Drafts with the DSpark drafter that the session's engine has loaded.

    Args:
        draft_vocab: the size of the draft vocabulary at each position: its candidates are the likeliest tokens before
            the Markov bias. 0 is the whole vocabulary, None is `default_draft_vocab`. q is a distribution over the
            candidates, so the size changes how many proposals are accepted, and never the distribution of the text.
        proposals: "sampled" draws each proposal from q, which is the request's own policy applied to the drafter's
            logits. "greedy" proposes the likeliest token with q = 1, which is better where the target is surer than the
            drafter. For greedy requests both are the same.

    Raises RequestError for an argument out of range; `propose` raises it when the engine has no drafter.
    """

    name = "dspark"

    @renamed_arguments(shortlist="draft_vocab")
    def __init__(self, draft_vocab: int | None = None, proposals: Proposals = "sampled") -> None:
        if draft_vocab is not None and draft_vocab < 0:
            raise RequestError(f"draft_vocab is {draft_vocab}, wanted a number of candidates, or 0 for all")
        if proposals not in ("sampled", "greedy"):
            raise RequestError(f"proposals is {proposals!r}, wanted 'sampled' or 'greedy'")
        self.draft_vocab = draft_vocab
        self.proposals = proposals

    if not TYPE_CHECKING:
        __getattr__ = renamed_attributes({"shortlist": "draft_vocab"})

    @property
    def priced_as(self) -> str:
        """The name that the costs of its drafts are kept under; it depends on the settings."""
        default = self.draft_vocab is None and self.proposals == "sampled"
        return self.name if default else f"{self.name}, {self.draft_vocab} {self.proposals}"

    def propose(self, session: TargetSession, request: DraftRequest, draft_length: int) -> Draft:
        """Returns a whole block, whatever `draft_length` is.

        The rows of a block see each other, so that a shorter one would begin with other proposals.
        """
        if request.arg_max or self.proposals == "greedy":
            return session.draft(draft_vocab=self.draft_vocab)
        return session.draft(request.sampler, request.rng, draft_vocab=self.draft_vocab)
