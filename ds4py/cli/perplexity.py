"""Defines `ds4py perplexity`, which measures how well a model predicts a text."""

import argparse
import json
import math
from typing import TYPE_CHECKING, Any, NamedTuple

from ds4py.cli.model import note, open_engine, read_text
from ds4py.cli.options import add_command, add_engine_flags, add_output_flags
from ds4py.console import Bar, UsageError, exits, number

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ds4py import Engine, Session

DEFAULT_CONTEXT = 512
ROWS = 64
"""Rows of logits that are evaluated and held at once."""

DESCRIPTION = """\
Scores every token of a text once: the mean negative log likelihood a token (in nats), its exponential (perplexity),
and bits per byte of the text, which compares models with different vocabularies. The text is cut into windows of -c
positions that begin --stride tokens apart; each window scores only the tokens that none before it has scored, so a
token outside the first window sees at least context - stride positions before it. Every window begins with the
vocabulary's begin-of-sequence token where it has one; where it has none, the text's first token is not scored."""


class Window(NamedTuple):
    """A span of tokens [begin, end) of the text that is evaluated at once. Tokens from `scored` on are scored."""

    begin: int
    scored: int
    end: int


def add_parser(commands: "argparse._SubParsersAction[Any]") -> None:
    """Adds the command and its flags."""
    parser = add_command(
        commands, "perplexity", run, help="score how well a model predicts a text", description=DESCRIPTION
    )
    parser.add_argument("model", metavar="FILE", help="target model (GGUF)")
    parser.add_argument("-f", "--file", required=True, metavar="TEXT", help="UTF-8 text; - is standard input")
    parser.add_argument(
        "--stride", type=number(int, 1), metavar="N", help="tokens between windows (default: half the context)"
    )
    add_engine_flags(parser, context_help=f"positions in a window (default: {DEFAULT_CONTEXT})")
    add_output_flags(parser)


def run(args: argparse.Namespace) -> int:
    """Scores a text, prints the result, and returns the exit code."""
    text = read_text(args.file)
    with open_engine(args, args.model) as engine:
        bos, tokens = encode(engine, text)
        context = args.context or min(DEFAULT_CONTEXT, engine.context_length)
        plan = windows(len(tokens), context - len(bos), args.stride or max(1, context // 2), first=1 - len(bos))
        note(args, f"{len(tokens)} tokens in {len(plan)} windows of {context} positions")
        with (
            engine.session(context=context, kv_dtype=args.kv_dtype) as session,
            Bar("scoring", quiet=args.quiet) as bar,
        ):
            total = 0.0
            for index, window in enumerate(plan):
                bar.update(index, len(plan))
                total += score(session, bos, tokens, window)
        skipped = sum(len(engine.tokenizer.token_bytes(token)) for token in tokens[: plan[0].scored])
    show(args, summary(total, len(tokens) - plan[0].scored, len(text.encode()) - skipped))
    return exits.OK


def encode(engine: "Engine", text: str) -> tuple[list[int], list[int]]:
    """Returns the begin-of-sequence token as a list, and the tokens of the text without it.

    The list is empty if the vocabulary has no such token. Raises UsageError for a text of fewer than two tokens.
    """
    tokenizer = engine.tokenizer
    bos = [] if tokenizer.bos_id is None else [tokenizer.bos_id]
    tokens = tokenizer.encode(text, add_bos=False, parse_special=False)
    if len(tokens) + len(bos) < 2:
        raise UsageError("the text is too short: scoring takes at least two tokens")
    return bos, tokens


def windows(count: int, width: int, stride: int, *, first: int) -> list[Window]:
    """Covers tokens [first, count) with windows of at most `width` tokens that begin `stride` tokens apart.

    Every token is scored in one window. Raises UsageError if such windows would leave tokens out.
    """
    if width < 1 + first or stride > width - first:
        raise UsageError(f"windows of {width} tokens cannot be {stride} apart: give a smaller --stride or a larger -c")
    plan = [Window(0, first, min(width, count))]
    while plan[-1].end < count:
        begin = plan[-1].begin + stride
        plan.append(Window(begin, plan[-1].end, min(begin + width, count)))
    return plan


def score(session: "Session", bos: list[int], tokens: list[int], window: Window) -> float:
    """Returns the negative log likelihood of a window's scored tokens, in nats. It rewinds the session first."""
    # Row i of the run predicts token i + 1, so the last token need not be run.
    run_tokens = bos + tokens[window.begin : window.end - 1]
    targets = tokens[window.scored : window.end]
    session.rewind(0)
    skip = len(run_tokens) - len(targets)
    if skip:
        session.prefill(run_tokens[:skip])
    return sum(
        negative_log_likelihood(session.evaluate(run_tokens[skip + at : skip + at + ROWS]), targets[at : at + ROWS])
        for at in range(0, len(targets), ROWS)
    )


def negative_log_likelihood(logits: "NDArray[np.float32]", targets: list[int]) -> float:
    """Returns the sum over rows of log(sum(exp(logits))) - logits[target], in nats; `logits` is [n, vocab]."""
    import numpy as np

    top = logits.max(axis=1, keepdims=True)
    log_sum = np.log(np.exp(logits - top).sum(axis=1, dtype=np.float64)) + top[:, 0]
    return float((log_sum - logits[np.arange(len(targets)), targets]).sum())


def summary(total: float, tokens: int, text_bytes: int) -> dict[str, float]:
    """Builds the object that `--json` prints."""
    mean = total / tokens
    return {
        "tokens": tokens,
        "bytes": text_bytes,
        "negative_log_likelihood": mean,
        "perplexity": math.exp(mean) if mean < 700 else math.inf,
        "bits_per_byte": total / math.log(2) / text_bytes,
    }


def show(args: argparse.Namespace, found: dict[str, float]) -> None:
    """Prints the result as JSON or as text."""
    if args.json:
        print(json.dumps(found))
        return
    print(
        f"{found['tokens']:.0f} tokens, {found['bytes']:.0f} bytes: negative log likelihood "
        f"{found['negative_log_likelihood']:.4f} a token, perplexity {found['perplexity']:.4f}, "
        f"{found['bits_per_byte']:.4f} bits per byte"
    )
