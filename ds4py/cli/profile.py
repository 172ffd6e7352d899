"""Defines `ds4py profile`, which measures steps on this machine and says where speculation pays."""

import argparse
import json
from typing import TYPE_CHECKING, Any

from ds4py.cli.model import model_facts, open_engine
from ds4py.cli.options import add_command, add_drafter_flag, add_engine_flags, add_model_flag, add_output_flags
from ds4py.console import Bar, exits, number, table
from ds4py.constants import MAX_ROWS
from ds4py.json_types import Json

if TYPE_CHECKING:
    from ds4py import Engine
    from ds4py.profile import DepthCosts, Profile

DESCRIPTION = """\
Measures a verify of every width k (the anchor and k proposals), a draft and a plain step, at each depth and after a
first run. From these it prints the survival (the acceptance of a proposal, given those before it) at which each width
is as fast as plain decoding, and the speed to expect at a survival. The costs are kept, and --width auto starts from
them."""

DEPTHS = (0, 4096)
SURVIVALS = (0.2, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)


def add_parser(commands: "argparse._SubParsersAction[Any]") -> None:
    """Adds the command and its flags."""
    parser = add_command(commands, "profile", run, help="measure where speculation pays", description=DESCRIPTION)
    add_model_flag(parser)
    add_drafter_flag(parser)
    parser.add_argument(
        "--depth", type=depths, metavar="N,...", help="tokens before the step (default: 0, and 4096 where that fits)"
    )
    parser.add_argument("--rounds", type=number(int, 3), default=7, metavar="N", help="steps of each kind (default: 7)")
    parser.add_argument("--plot", metavar="FILE", help="draw the costs and speeds (PNG, SVG, PDF); needs matplotlib")
    add_engine_flags(parser)
    add_output_flags(parser)


def depths(text: str) -> list[int]:
    """Parses `0,4096` as depths."""
    return [number(int, 0)(part) for part in text.split(",")]


def run(args: argparse.Namespace) -> int:
    """Measures, prints the tables, and returns the exit code."""
    from ds4py.profile import measure
    from ds4py.profile.plot import check_plot, plot

    if args.plot:
        check_plot(args.plot)
    with open_engine(args, args.model, args.drafter) as engine:
        chosen = args.depth or [each for each in DEPTHS if each <= engine.context_length - MAX_ROWS]
        with Bar("measuring", quiet=args.quiet) as bar:
            profile = measure(engine, chosen, rounds=args.rounds, kv_dtype=args.kv_dtype, progress=bar.update)
        if args.json:
            print(json.dumps(summary(engine, profile)))
        else:
            show(engine, profile)
        if args.plot:
            plot(profile, args.plot, title(engine))
    return exits.OK


def title(engine: "Engine") -> str:
    """Names the model, the device and the threads in one line."""
    return f"{engine.name} on {engine.device}, {engine.threads} threads"


def summary(engine: "Engine", profile: "Profile") -> Json:
    """Builds the object that `--json` prints."""
    return {
        "model": model_facts(engine),
        "drafter": engine.drafter and engine.drafter.path,
        "device": engine.device,
        "threads": engine.threads,
        **profile.as_dict(),
    }


def show(engine: "Engine", profile: "Profile") -> None:
    """Prints the tables of each depth."""
    print(title(engine))
    for depth in profile.depths:
        draft = "no drafter" if depth.draft_ms is None else f"a draft {depth.draft_ms:.2f} ms"
        print(f"\ndepth {depth.depth}: a plain step {depth.plain_ms:.2f} ms, {draft}")
        print(table(cost_table(depth)))
        print()
        print(table(speed_table(depth)))


def cost_table(depth: "DepthCosts") -> list[list[str]]:
    """Builds a row for each width: its verify in ms and in plain steps, and the survival from which it pays."""
    lines = [["width", "verify ms", "of plain", "pays from survival"]]
    for k, (ms, even) in enumerate(zip(depth.verify_ms, [None, *depth.break_even], strict=True)):
        pays = "" if k == 0 else "never" if even is None else f"{even:.2f}"
        lines.append([str(k), f"{ms:.2f}", f"{ms / depth.plain_ms:.2f}", pays])
    return lines


def speed_table(depth: "DepthCosts") -> list[list[str]]:
    """Builds a row for each survival: the best width, its tokens per second, and its speed over plain decoding."""
    lines = [["survival", "best width", "tokens/s", "of plain"]]
    for survival in SURVIVALS:
        width, rate = depth.speed(survival)
        lines.append([f"{survival:.1f}", str(width), f"{rate:.1f}", f"{rate * depth.plain_ms / 1000:.2f}"])
    return lines
