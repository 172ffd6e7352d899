"""Formats what the command line says about speculative decoding."""

import argparse
from collections.abc import Iterable
from typing import TYPE_CHECKING

from ds4py.cli.model import note
from ds4py.cli.options import chosen_draft_length
from ds4py.constants import MAX_DRAFT_LENGTH

if TYPE_CHECKING:
    from ds4py import Engine
    from ds4py.speculative import Speculation


def note_draft_length(args: argparse.Namespace, engine: "Engine") -> None:
    """Says how draft lengths are chosen, and when --draft-length is more than the engine's drafter makes."""
    drafter = engine.drafter
    if args.draft == "off" or (args.draft == "auto" and drafter is None):
        return
    breaker = f", breaker {'/'.join(map(str, args.breaker))}" if args.breaker else ""
    draft_length = chosen_draft_length(args)
    shown = "all that are proposed" if draft_length == MAX_DRAFT_LENGTH else draft_length
    note(args, f"draft {args.draft}, draft length {shown}{breaker}{known_costs(args, engine)}")
    if drafter and args.draft != "lookup" and isinstance(args.draft_length, int) and args.draft_length > drafter.block:
        note(
            args, f"--draft-length {args.draft_length} is more than the drafter proposes: {drafter.block} are verified"
        )


def known_costs(args: argparse.Namespace, engine: "Engine") -> str:
    """Describes the costs that the automatic draft length starts from; empty for another draft length."""
    if chosen_draft_length(args) != "auto":
        return ""
    drafter = engine.drafter if args.draft != "lookup" else None
    curve = engine.costs.curve(0, "dspark" if drafter else None)
    if curve is None or engine.costs.unmeasured(range(drafter.block + 1 if drafter else 2)) is not None:
        return " (costs are learned in the first cycles)"
    draft = f", draft {1000 * curve.draft:.2f} ms" if curve.draft else ""
    return f" (costs of earlier runs: plain step {1000 * curve.plain:.2f} ms{draft})"


def note_speculation(args: argparse.Namespace, found: "Speculation") -> None:
    """Prints the statistics of drafting. Prints nothing if nobody drafted or nothing was generated."""
    if found.drafter == "off" or not found.cycles:
        return
    note(
        args,
        f"draft {found.drafter}: {found.emitted_per_cycle:.2f} tokens a cycle in {len(found.cycles)} "
        f"({found.plain_cycles} plain); accepted {found.accepted} of {found.drafted} proposals "
        f"({found.acceptance:.0%}; {found.survival:.0%} of those decided), by position "
        + (" ".join(f"{rate:.0%}" for rate in found.acceptance_by_position) or "none"),
    )
    note(
        args,
        f"cycles by draft length {show_histogram(found.draft_lengths)}{show_drafters(found)}; median ms: "
        f"draft {found.draft_ms.median:.2f}, verify {found.verify_ms.median:.2f}, accept {found.accept_ms.median:.2f}",
    )
    if found.plain_tokens_per_second:
        note(
            args,
            f"{found.tokens_per_second:.1f} tokens/s in cycles, plain decoding {found.plain_tokens_per_second:.1f} by "
            f"measured costs; {found.tried_ms:.1f} ms went into finding out",
        )


def show_drafters(found: "Speculation") -> str:
    """Formats the cycles of each drafter, such as ` (dspark 5, lookup 9)`. The text is empty for one drafter."""
    parts = ", ".join(f"{name} {count}" for name, count in found.drafters.items())
    return f" ({parts})" if parts and "+" in found.drafter else ""


def show_histogram(counts: Iterable[int]) -> str:
    """Formats counts by value, such as `0:1 5:42`. Values with a count of 0 are left out."""
    return " ".join(f"{value}:{count}" for value, count in enumerate(counts) if count) or "none"
