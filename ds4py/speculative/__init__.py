"""Speculative decoding: a drafter proposes, the target verifies, and what is emitted follows the target exactly.

docs/dspark.md has the formulas, docs/glossary.md the terms.
"""

from typing import TYPE_CHECKING

from ds4py.deprecated import renamed
from ds4py.speculative.accept import Proposals, accept
from ds4py.speculative.choice import Choice, choose
from ds4py.speculative.costs import Costs, Curve
from ds4py.speculative.draft import DeviceQ, Draft
from ds4py.speculative.draft_length import (
    Auto,
    Breaker,
    Confidence,
    DraftEstimate,
    DraftLengthPolicy,
    Ewma,
    Fixed,
    Staged,
    as_draft_length,
)
from ds4py.speculative.drafter import Drafter
from ds4py.speculative.drafter_info import DrafterInfo, default_draft_vocab
from ds4py.speculative.dspark import DSparkDrafter
from ds4py.speculative.lookup import PromptLookupDrafter
from ds4py.speculative.loop import AcceptanceRule, Loop
from ds4py.speculative.request import DraftRequest
from ds4py.speculative.scripted import ScriptedDrafter
from ds4py.speculative.stats import Cycle, Speculation
from ds4py.speculative.target import TargetSession

__all__ = [
    "AcceptanceRule",
    "Auto",
    "Breaker",
    "Choice",
    "Confidence",
    "Costs",
    "Curve",
    "Cycle",
    "DSparkDrafter",
    "DeviceQ",
    "Draft",
    "DraftEstimate",
    "DraftLengthPolicy",
    "DraftRequest",
    "Drafter",
    "DrafterInfo",
    "Ewma",
    "Fixed",
    "Loop",
    "PromptLookupDrafter",
    "Proposals",
    "ScriptedDrafter",
    "Speculation",
    "Staged",
    "TargetSession",
    "accept",
    "as_draft_length",
    "choose",
    "default_draft_vocab",
]

if not TYPE_CHECKING:  # else a type checker would take every name for one of this module
    __getattr__ = renamed(
        __name__,
        {
            "HeldQ": "DeviceQ",
            "Offer": "DraftEstimate",
            "Request": "DraftRequest",
            "Rule": "AcceptanceRule",
            "Width": "DraftLengthPolicy",
            "as_width": "as_draft_length",
            "default_shortlist": "default_draft_vocab",
        },
    )
