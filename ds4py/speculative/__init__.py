"""Speculative decoding: a drafter proposes, the target verifies, and what is emitted follows the target exactly."""

from ds4py.deprecated import renamed
from ds4py.speculative.accept import Proposals, accept
from ds4py.speculative.choice import Choice, choose
from ds4py.speculative.costs import Costs, Curve
from ds4py.speculative.draft import Draft, HeldQ
from ds4py.speculative.draft_length import Auto, Breaker, Confidence, Ewma, Fixed, Staged, Width, as_width
from ds4py.speculative.draft_length.base import Offer
from ds4py.speculative.drafter import Drafter
from ds4py.speculative.drafter_info import DrafterInfo, default_shortlist
from ds4py.speculative.dspark import DSparkDrafter
from ds4py.speculative.lookup import PromptLookupDrafter
from ds4py.speculative.loop import Loop, Rule
from ds4py.speculative.request import DraftRequest
from ds4py.speculative.scripted import ScriptedDrafter
from ds4py.speculative.stats import Cycle, Speculation
from ds4py.speculative.target import TargetSession

__all__ = [
    "Auto",
    "Breaker",
    "Choice",
    "Confidence",
    "Costs",
    "Curve",
    "Cycle",
    "DSparkDrafter",
    "Draft",
    "DraftRequest",
    "Drafter",
    "DrafterInfo",
    "Ewma",
    "Fixed",
    "HeldQ",
    "Loop",
    "Offer",
    "PromptLookupDrafter",
    "Proposals",
    "Rule",
    "ScriptedDrafter",
    "Speculation",
    "Staged",
    "TargetSession",
    "Width",
    "accept",
    "as_width",
    "choose",
    "default_shortlist",
]

__getattr__ = renamed(__name__, {"Request": "DraftRequest"})
