"""Measures the speed of speculation against plain decoding, by kind of prompt, temperature and configuration.

Usage: speculation.py [-m TARGET] [-md DRAFTER] [--configs plain,dspark0,dspark1,...] [--temps 0,0.7,1] [-n 200]
                      [--kinds code,json,...] [--prompts short|long|both] [--rounds 3] [--json FILE]
       speculation.py --long [-n 16000] ...    long texts: how they end, repetition and speed by quarter
       speculation.py --quality -m TARGET ...  questions with known answers, without and with speculation

Without -m it runs the embedded pair. Configurations: plain and lookup have no drafter loaded; dspark drafts, and
dspark0 has a drafter that it never asks; dspark3 verifies 3 proposals at most, and so does lookup3; auto is the default
of `ds4py generate`. The target is opened twice, with and without the drafter, so that a device needs room for both.

All configurations take their turn in each round, with one seed. Rates are medians over the rounds, of steady decoding
(see steady.py); a ratio to plain comes with its range over the rounds. A cycle's times are means over all cycles.
"""

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path
from statistics import median
from typing import Any

from pair import DEFAULTS, Pair
from prompts import KINDS, LENGTHS, prompt
from steady import Cell, Config, Difference, Text, averages, compared, difference, distinct
from trials import long_texts, quality, share

import ds4py
from ds4py import Sampling
from ds4py.cli.speculation import show_histogram
from ds4py.speculative import Speculation

CONTINUE = "Go on with this document. Answer with what follows, and with nothing else.\n\n"
TOKENS, TEMPERATURES, WARM_UP = 200, (0.0, 0.7, 1.0), 16
HEAD = (
    f"{'prompt':12}{'temp':>5} {'config':9}{'tokens/s':>9} {'ratio to plain':19}{'tok/cycle':>9}{'draft ms':>9}"
    f"{'verify ms':>10}{'distinct':>9}  {'end':7}accepted by position, %"
)


def table(pair: Pair, args: argparse.Namespace) -> dict[str, Any]:
    """Measures every prompt, temperature and configuration; prints the table and gives it as plain values."""
    configs = pair.configs(args.configs and "plain," + args.configs)
    policies = [Sampling(temperature=each, seed=args.seed) for each in args.temps or TEMPERATURES]
    tokens = args.tokens or TOKENS
    prompts = {label: pair.encode(text, chat=args.chat) for label, text in texts(args)}
    context = pair.open_sessions(list(prompts.values()), tokens)
    header = pair.header(context=context, tokens=tokens, rounds=args.rounds, seed=args.seed, chat=args.chat)
    for config in configs:
        pair.generate(next(iter(prompts.values())), config, Sampling(temperature=0), min(tokens, WARM_UP))
    print("\n" + HEAD)
    groups = []
    for label, policy in product(prompts, policies):
        groups.append(measure(pair, label, prompts[label], configs, policy, tokens, args.rounds))
        print_group(groups[-1])
    sums = totals(groups)
    print_totals(sums)
    greedy = [group for group in groups if group[0].temperature == 0]
    differences = [each for group in greedy for each in differing(pair, prompts[group[0].kind], group)]
    print_differences(differences if greedy else None)
    return {
        **header,
        "cells": [cell.as_dict(group[0]) for group in groups for cell in group],
        "totals": sums,
        "differences": [each._asdict() for each in differences] if greedy else None,
    }


def texts(args: argparse.Namespace) -> Iterator[tuple[str, str]]:
    """The prompts asked for, each with its label."""
    for kind in args.kinds:
        for length in LENGTHS if args.prompts == "both" else [args.prompts]:
            yield f"{kind}/{length}", CONTINUE * args.chat + prompt(kind, length)


def measure(
    pair: Pair, label: str, ids: Sequence[int], configs: Sequence[Config], sampling: Sampling, tokens: int, rounds: int
) -> list[Cell]:
    """A cell for each configuration, in their order; who begins changes from round to round."""
    found: dict[str, list[Text]] = {config.name: [] for config in configs}
    for number in range(rounds):
        first = number % len(configs)
        for config in (*configs[first:], *configs[:first]):
            found[config.name].append(pair.generate(ids, config, sampling, tokens))
    return [Cell(label, sampling.temperature, name, tuple(made)) for name, made in found.items()]


def differing(pair: Pair, ids: Sequence[int], group: Sequence[Cell]) -> list[Difference]:
    """The greedy texts that are not that of plain decoding, the first of the group."""
    found = (difference(cell, group[0], lambda text: pair.lead([*ids, *text])) for cell in group)
    return [each for each in found if each]


def print_group(group: Sequence[Cell]) -> None:
    """Prints the cells of one prompt and temperature, the first of which is plain decoding."""
    for cell in group:
        text, done = cell.rounds[-1], cell.speculation
        print(
            f"{cell.kind:12}{cell.temperature:>5g} {cell.config:9}{cell.rate:>9.2f} {ratio_cell(cell, group[0]):19}"
            f"{done.emitted_per_cycle:>9.2f}{cell.mean_ms('draft'):>9.2f}{cell.mean_ms('verify'):>10.2f}"
            f"{share(distinct(text.tokens)):>9}  {text.finish:7}{percents(done)}",
            flush=True,
        )


def ratio_cell(cell: Cell, plain: Cell) -> str:
    """Such as `1.31 (1.28..1.33)`."""
    found = compared(cell, plain)
    return "-" if found.ratio is None else f"{found.ratio:.2f} ({found.ratio_least:.2f}..{found.ratio_most:.2f})"


def percents(done: Speculation) -> str:
    """Accepted of the cycles that verified each position."""
    return " ".join(f"{100 * rate:.0f}" for rate in done.acceptance_by_position) or "-"


def totals(groups: Sequence[Sequence[Cell]]) -> list[dict[str, Any]]:
    """Averages over the prompts for each temperature and, with several, for all of them (temperature None)."""
    temps: list[float | None] = list(dict.fromkeys(group[0].temperature for group in groups))
    rows = []
    for temperature in [*temps, None] if len(temps) > 1 else temps:
        part = [group for group in groups if temperature in (None, group[0].temperature)]
        columns = list(zip(*part, strict=True))
        rows += [total(temperature, column, columns[0]) for column in columns]
    return rows


def total(temperature: float | None, cells: Sequence[Cell], plain: Sequence[Cell]) -> dict[str, Any]:
    """Returns the averages of one configuration, and their ratios to plain decoding of the same prompts."""
    ours, theirs = averages(cells), averages(plain)
    return {
        "temperature": temperature,
        "config": cells[0].config,
        "by_time": ours.by_time,
        "by_time_ratio": ours.by_time / theirs.by_time if theirs.by_time else None,
        "by_tokens": ours.by_tokens,
        "by_tokens_ratio": ours.by_tokens / theirs.by_tokens if theirs.by_tokens else None,
        "prompt_tokens_per_second": median(cell.prompt_rate for cell in cells),
        "widths": Speculation(cycles=[cycle for cell in cells for cycle in cell.rounds[-1].cycles]).draft_lengths,
    }


def print_totals(rows: Sequence[dict[str, Any]]) -> None:
    """Prints the averages."""
    print("\ntokens/s over all prompts; by time: all tokens over all seconds; by tokens: the mean weighted by tokens;")
    print("prompt: the median rate of prompts")
    print(
        f"{'temp':>5} {'config':9}{'by time':>9}{'ratio':>7}{'by tokens':>11}{'ratio':>7}{'prompt':>9}  "
        "cycles by draft length"
    )
    for row in rows:
        temperature = "all" if row["temperature"] is None else f"{row['temperature']:g}"
        print(
            f"{temperature:>5} {row['config']:9}{row['by_time']:>9.2f}{times(row['by_time_ratio']):>7}"
            f"{row['by_tokens']:>11.2f}{times(row['by_tokens_ratio']):>7}{row['prompt_tokens_per_second']:>9.0f}"
            f"  {show_histogram(row['widths'])}"
        )


def times(ratio: float | None) -> str:
    """A ratio, or a dash."""
    return "-" if ratio is None else f"{ratio:.2f}"


def print_differences(found: Sequence[Difference] | None) -> None:
    """Says whether the greedy texts are those of plain decoding."""
    if found is None:
        print("\ntexts were not compared: none is greedy (temperature 0)")
    elif not found:
        print("\nall greedy texts are those of plain decoding")
    for each in found or ():
        print(
            f"\n{each.kind}, {each.config}: differs from plain decoding from token {each.at} on, "
            f"where the two likeliest are {each.lead:.6f} apart"
        )


def numbers(text: str) -> list[float]:
    """Comma-separated numbers."""
    return [float(each) for each in text.split(",")]


def kinds(text: str) -> list[str]:
    """Comma-separated kinds of prompts."""
    if unknown := set(text.split(",")) - set(KINDS):
        raise argparse.ArgumentTypeError(f"there is no {min(unknown)!r}, wanted some of {','.join(KINDS)}")
    return text.split(",")


def positive(text: str) -> int:
    """A whole number above 0."""
    if (found := int(text)) < 1:
        raise argparse.ArgumentTypeError(f"{found}, wanted 1 or more")
    return found


def parser() -> argparse.ArgumentParser:
    """The command line."""
    made = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("-m", "--model")
    made.add_argument("-md", "--drafter")
    made.add_argument("--configs", help=f"default: {','.join(DEFAULTS)}, as far as the drafter goes")
    made.add_argument("--temps", type=numbers)
    made.add_argument("--kinds", type=kinds, default=list(KINDS))
    made.add_argument("--prompts", choices=(*LENGTHS, "both"), default="short")
    made.add_argument("--chat", action="store_true", help="ask for what follows, in the chat layout")
    made.add_argument("-n", "--tokens", type=positive)
    made.add_argument("-t", "--threads", type=positive)
    made.add_argument("--device", default="auto")
    made.add_argument("--rounds", type=positive, default=3)
    made.add_argument("--seed", type=int, default=1)
    made.add_argument("--json", type=Path, metavar="FILE")
    mode = made.add_mutually_exclusive_group()
    mode.add_argument("--long", action="store_const", dest="run", const=long_texts, default=table)
    mode.add_argument("--quality", action="store_const", dest="run", const=quality)
    return made


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the bench; returns the exit code."""
    args = parser().parse_args(arguments)
    try:
        if args.json:
            args.json.touch()  # a place that cannot be written to should fail before the work
        with Pair.opened(args.model, args.drafter, args.device, args.threads) as pair:
            found = args.run(pair, args)
    except (ds4py.Error, OSError) as error:
        print(f"speculation.py: error: {error}", file=sys.stderr)
        return 2
    if args.json:
        args.json.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
