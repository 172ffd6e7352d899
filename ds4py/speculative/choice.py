"""The drafters that a request names."""

from __future__ import annotations

from typing import Literal, get_args

from ds4py.errors import RequestError
from ds4py.speculative.drafter import Drafter
from ds4py.speculative.drafter_info import DrafterInfo
from ds4py.speculative.dspark import DSparkDrafter
from ds4py.speculative.lookup import PromptLookupDrafter

Choice = Literal["auto", "off", "dspark", "lookup"]


def choose(
    choice: Choice | Drafter, engine_drafter: DrafterInfo | None, lookup: PromptLookupDrafter, shortlist: int | None
) -> tuple[Drafter, ...]:
    """Who may propose, nobody for "off"; of several, the most promising does each cycle.

    `shortlist` is that of the engine's drafter, None its default. Raises RequestError for a name that there is not, and
    for "dspark" where the engine has no drafter.
    """
    if not isinstance(choice, str) and hasattr(choice, "propose"):
        return (choice,)
    if choice not in get_args(Choice):
        raise RequestError(f"draft is {choice!r}, wanted 'auto', 'off', 'dspark', 'lookup' or a drafter")
    if choice == "lookup":
        return (lookup,)
    if choice == "off" or (choice == "auto" and engine_drafter is None):
        return ()
    if engine_drafter is None:
        raise RequestError(
            "draft is 'dspark', but there is no drafter: load one with the engine (-md), or use 'lookup'"
        )
    dspark = DSparkDrafter(shortlist)
    return (dspark, lookup) if choice == "auto" else (dspark,)
