"""The drafter that a request names."""

from __future__ import annotations

from typing import Literal

from ds4py.errors import RequestError
from ds4py.speculative.draft import Drafter
from ds4py.speculative.dspark import DrafterInfo, DSparkDrafter
from ds4py.speculative.lookup import PromptLookupDrafter

Choice = Literal["auto", "off", "dspark", "lookup"]


def choose(
    choice: Choice | Drafter, engine_drafter: DrafterInfo | None, lookup: PromptLookupDrafter, shortlist: int | None
) -> Drafter | None:
    """Who proposes; None is nobody. `shortlist` is that of "dspark", None its default.

    Raises RequestError for a name that there is not, and for "dspark" where the engine has no drafter.
    """
    if not isinstance(choice, str) and hasattr(choice, "propose"):
        return choice
    if choice == "off" or (choice == "auto" and engine_drafter is None):
        return None
    if choice == "lookup":
        return lookup
    if choice not in ("auto", "dspark"):
        raise RequestError(f"draft is {choice!r}, wanted 'auto', 'off', 'dspark', 'lookup' or a drafter")
    if engine_drafter is None:
        raise RequestError(
            "draft is 'dspark', but there is no drafter: load one with the engine (-md), or use 'lookup'"
        )
    return DSparkDrafter(shortlist)
