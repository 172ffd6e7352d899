"""Speculative decoding: a drafter proposes, the target verifies, and what is emitted follows the target exactly."""

from ds4py.deprecated import renamed
from ds4py.speculative.accept import Proposals, accept
from ds4py.speculative.choice import Choice, choose
from ds4py.speculative.costs import Costs, Curve
from ds4py.speculative.draft import Draft, Drafter, DraftRequest, DeviceQ
from ds4py.speculative.draft_length import Auto, Breaker, Confidence, Ewma, Fixed, Staged, Width, as_width
from ds4py.speculative.draft_length.base import Offer
from ds4py.speculative.dspark import DrafterInfo, DSparkDrafter, default_shortlist
from ds4py.speculative.lookup import PromptLookupDrafter
from ds4py.speculative.loop import Loop, Rule
from ds4py.speculative.scripted import ScriptedDrafter
from ds4py.speculative.stats import Cycle, Speculation

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
    "DeviceQ",
    "Loop",
    "Offer",
    "PromptLookupDrafter",
    "Proposals",
    "Rule",
    "ScriptedDrafter",
    "Speculation",
    "Staged",
    "Width",
    "accept",
    "as_width",
    "choose",
    "default_shortlist",
]

__getattr__ = renamed(__name__, {"Request": "DraftRequest"})
