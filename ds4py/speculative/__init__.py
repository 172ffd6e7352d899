"""Speculative decoding: a drafter proposes, the target verifies, and what is emitted follows the target exactly."""

from ds4py.speculative.accept import Proposals, accept
from ds4py.speculative.choice import Choice, choose
from ds4py.speculative.draft import Draft, Drafter, Request
from ds4py.speculative.dspark import DrafterInfo, DSparkDrafter, default_shortlist
from ds4py.speculative.lookup import PromptLookupDrafter
from ds4py.speculative.loop import Loop, Rule
from ds4py.speculative.scripted import ScriptedDrafter
from ds4py.speculative.stats import Cycle, Speculation
from ds4py.speculative.width import Fixed, Width, as_width

__all__ = [
    "Choice",
    "Cycle",
    "DSparkDrafter",
    "Draft",
    "Drafter",
    "DrafterInfo",
    "Fixed",
    "Loop",
    "PromptLookupDrafter",
    "Proposals",
    "Request",
    "Rule",
    "ScriptedDrafter",
    "Speculation",
    "Width",
    "accept",
    "as_width",
    "choose",
    "default_shortlist",
]
