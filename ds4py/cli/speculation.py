"""What the command line says about drafting."""

import argparse
from collections.abc import Iterable
from typing import TYPE_CHECKING

from ds4py.cli.model import note

if TYPE_CHECKING:
    from ds4py import Engine
    from ds4py.speculative import Speculation


def note_width(args: argparse.Namespace, engine: "Engine") -> None:
    """Says when --width is more than the engine's drafter makes."""
    drafter = engine.drafter
    if args.draft in ("auto", "dspark") and drafter is not None and (args.width or 0) > drafter.block:
        note(args, f"--width {args.width} is more than the drafter proposes: {drafter.block} are verified")


def note_speculation(args: argparse.Namespace, found: "Speculation") -> None:
    """Two lines about what drafting did; none where nobody drafted."""
    if found.drafter == "off":
        return
    note(
        args,
        f"draft {found.drafter}: {found.emitted_per_cycle:.2f} tokens a cycle in {len(found.cycles)} "
        f"({found.plain_cycles} plain); accepted {found.accepted} of {found.drafted} proposals "
        f"({found.acceptance:.0%}; {found.survival:.0%} of those judged), by position "
        + (" ".join(f"{rate:.0%}" for rate in found.acceptance_by_position) or "none"),
    )
    note(
        args,
        f"cycles by width {show_histogram(found.widths)}; median ms: draft {found.draft_ms.median:.2f}, "
        f"verify {found.verify_ms.median:.2f}, accept {found.accept_ms.median:.2f}",
    )


def show_histogram(counts: Iterable[int]) -> str:
    """Such as `0:1 5:42`, without what never occurred."""
    return " ".join(f"{value}:{count}" for value, count in enumerate(counts) if count) or "none"
