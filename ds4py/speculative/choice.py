"""The drafters that a request asks for by name."""

from __future__ import annotations

from typing import Literal, get_args

from ds4py.errors import RequestError
from ds4py.speculative.drafter import Drafter
from ds4py.speculative.drafter_info import DrafterInfo
from ds4py.speculative.dspark import DSparkDrafter
from ds4py.speculative.lookup import PromptLookupDrafter

Choice = Literal["auto", "off", "dspark", "lookup"]


def choose(
    choice: Choice | Drafter, engine_drafter: DrafterInfo | None, lookup: PromptLookupDrafter, draft_vocab: int | None
) -> tuple[Drafter, ...]:
    """Returns the drafters that may propose: none for "off"; of several, the most promising one is asked each cycle.

    Args:
        choice: "auto", "off", "dspark", "lookup", or a drafter of the caller's.
        engine_drafter: the engine's drafter; None where it has none.
        lookup: the drafter that looks up the session's own tokens.
        draft_vocab: the size of the draft vocabulary of "dspark"; None is its default.

    Raises RequestError for an unknown name, and for "dspark" where the engine has no drafter.
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
    dspark = DSparkDrafter(draft_vocab)
    return (dspark, lookup) if choice == "auto" else (dspark,)
