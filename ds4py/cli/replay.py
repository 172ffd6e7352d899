"""Defines `ds4py replay`, which checks speculative decoding against the target alone."""

import argparse
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ds4py.cli.model import open_engine
from ds4py.cli.options import (
    add_command,
    add_drafting_flags,
    add_engine_flags,
    add_model_flag,
    add_output_flags,
    drafting_arguments,
)
from ds4py.cli.prompt import add_length_flags, add_prompt_flags, encode, prompt_text, token_limit
from ds4py.cli.speculation import note_speculation, note_width
from ds4py.console import Bar, exits, number
from ds4py.json_types import Json

if TYPE_CHECKING:
    from ds4py import Session

DESCRIPTION = """\
Generates greedily with a drafter, then runs the same tokens through the target alone, one row at a time, and prints
    nspec             tokens that were generated
    max_chunk         the most of them in one cycle
    worst_argmax_gap  the greatest difference of a row's largest logit and its token's; 0 if all are arg maxima
    at                index of the token with that gap, -1 for none
and whether plain greedy decoding gives the same text. Kernels that compute a row differently alone than among others
can turn near ties, so a small gap need not be an error. The exit code is 1 if the gap is above --tolerance."""


class Row(NamedTuple):
    """The logits of the target alone at a generated token, as two differences."""

    gap: float
    """The largest logit minus the token's."""
    lead: float
    """The largest logit minus the second largest."""


def add_parser(commands: "argparse._SubParsersAction[Any]") -> None:
    """Adds the command and its flags."""
    parser = add_command(
        commands, "replay", run, help="check speculative decoding against the target alone", description=DESCRIPTION
    )
    add_model_flag(parser)
    parser.add_argument(
        "--tolerance", type=number(float, 0), default=0.0, metavar="X", help="largest gap that is accepted (default: 0)"
    )
    add_prompt_flags(parser)
    add_length_flags(parser)
    add_drafting_flags(parser)
    add_engine_flags(parser, context_help="positions the session can hold (default: chosen by the engine)")
    add_output_flags(parser)


def run(args: argparse.Namespace) -> int:
    """Generates, replays, prints the comparison, and returns the exit code."""
    text = prompt_text(args)
    with open_engine(args, args.model, args.drafter) as engine:
        note_width(args, engine)
        prompt = encode(args, engine, text)
        with engine.session(context=args.context, kv_dtype=args.kv_dtype) as session:
            chunks = generate(args, session, prompt, **drafting_arguments(args))
            speculation = session.stats.speculation
            tokens = [token for chunk in chunks for token in chunk]
            plain = [token for chunk in generate(args, session, prompt, draft="off") for token in chunk]
            rows = replay(args, session, prompt, tokens)
    found = summary(chunks, rows, first_difference(tokens, plain))
    if args.json:
        print(json.dumps({**found, "ids": tokens, "speculation": speculation.as_dict()}))
    else:
        note_speculation(args, speculation)
        show(found)
    return exits.OK if found["worst_argmax_gap"] <= args.tolerance else exits.RUN_TIME


def generate(
    args: argparse.Namespace, session: "Session", prompt: Sequence[int], **drafting: Any
) -> list[tuple[int, ...]]:
    """Returns the tokens of each cycle of greedy decoding. It rewinds the session first."""
    import ds4py

    greedy = ds4py.Sampling(temperature=0)
    session.rewind(0)
    pieces = session.generate(prompt, max_tokens=token_limit(args), sampling=greedy, stop=args.stop, **drafting)
    return [piece.tokens for piece in pieces if piece.tokens]


def replay(args: argparse.Namespace, session: "Session", prompt: Sequence[int], tokens: Sequence[int]) -> list[Row]:
    """Returns a row for each of `tokens` and one for the token after them, from the target alone.

    The gap of the last row is 0, because no token was generated there.
    """
    import numpy as np

    session.rewind(0)
    session.prefill(prompt)
    rows = []
    with Bar("replaying", quiet=args.quiet) as bar:
        for index, token in enumerate([*tokens, None]):
            logits = session.logits()
            second, largest = np.partition(logits, -2)[-2:].tolist()
            rows.append(Row(0.0 if token is None else largest - float(logits[token]), largest - second))
            if token is not None:
                session.prefill([token])
            bar.update(index, len(tokens))
    return rows


def first_difference(a: Sequence[int], b: Sequence[int]) -> int | None:
    """Returns the index of the first token in which two texts differ, or None if they are equal.

    If one text is a prefix of the other, the index is its length.
    """
    same = next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
    return None if same == len(a) == len(b) else same


def summary(chunks: Sequence[Sequence[int]], rows: Sequence[Row], divergence: int | None) -> Json:
    """Builds the object that `--json` prints, without token ids and statistics."""
    worst = max(range(len(rows)), key=lambda i: rows[i].gap)
    return {
        "nspec": len(rows) - 1,
        "max_chunk": max(map(len, chunks), default=0),
        "worst_argmax_gap": rows[worst].gap,
        "at": worst if rows[worst].gap > 0 else -1,
        "same_as_plain": divergence is None,
        "first_divergence": divergence,
        "divergence_lead": None if divergence is None else rows[divergence].lead,
    }


def show(found: Json) -> None:
    """Prints the comparison as text."""
    print("nspec={nspec} max_chunk={max_chunk} worst_argmax_gap={worst_argmax_gap:.6f} at={at}".format(**found))
    if found["same_as_plain"]:
        print("plain greedy decoding gives the same tokens")
    else:
        print(
            "plain greedy decoding differs from token {first_divergence} on, where the two likeliest are "
            "{divergence_lead:.6f} apart".format(**found)
        )
