"""Defines `ds4py generate`, which continues a prompt."""

import argparse
import json
from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from ds4py.cli.model import model_facts, note, open_engine
from ds4py.cli.options import (
    SAMPLING,
    add_command,
    add_drafting_flags,
    add_engine_flags,
    add_model_flag,
    add_output_flags,
    add_sampling_flags,
    drafting_arguments,
    sampling_arguments,
)
from ds4py.cli.prompt import (
    DEFAULT_MAX_TOKENS,
    add_length_flags,
    add_prompt_flags,
    encode,
    prompt_text,
    token_limit,
)
from ds4py.cli.speculation import note_speculation, note_width
from ds4py.console import Bar, exits
from ds4py.json_types import Json

if TYPE_CHECKING:
    from ds4py import Engine, Piece, Session

DESCRIPTION = f"""\
Continues a prompt. Text goes to standard output while it is generated, messages go to standard error.
The prompt comes from -p, -f or --prompt-ids, or from standard input if that is not a terminal. One line end at the end
of a file or of standard input is dropped. Generation ends at the model's end token, at a --stop text, after
{DEFAULT_MAX_TOKENS} tokens (or those of -n), or when the context is full."""


def add_parser(commands: "argparse._SubParsersAction[Any]") -> None:
    """Adds the command and its flags."""
    parser = add_command(commands, "generate", run, help="continue a prompt", description=DESCRIPTION)
    add_model_flag(parser)
    add_prompt_flags(parser)
    add_length_flags(parser)
    add_sampling_flags(parser)
    add_drafting_flags(parser)
    add_engine_flags(parser, context_help="positions the session can hold (default: chosen by the engine)")
    add_output_flags(parser)


def run(args: argparse.Namespace) -> int:
    """Generates and prints a continuation, and returns the exit code."""
    import ds4py

    text = prompt_text(args)
    sampling = ds4py.Sampling(**sampling_arguments(args, SAMPLING))
    with open_engine(args, args.model, args.drafter) as engine:
        note_width(args, engine)
        prompt = encode(args, engine, text)
        with engine.session(context=args.context, kv_dtype=args.kv_dtype) as session:
            result = Result()
            with Bar("prompt", quiet=args.quiet) as bar:

                def pieces() -> Iterator["Piece"]:
                    # `generate` evaluates the prompt before it returns, so Ctrl-C must be caught around this call, too.
                    yield from session.generate(
                        prompt,
                        max_tokens=token_limit(args),
                        sampling=sampling,
                        stop=args.stop,
                        progress=bar.update,
                        **drafting_arguments(args),
                    )

                result.follow(pieces(), bar, echo=not args.json)
            report(args, engine, session, result)
    return exits.INTERRUPTED if result.finish_reason == "interrupted" else exits.OK


class Result:
    """Collects what has been generated. It stays valid when generation is interrupted."""

    def __init__(self) -> None:
        self.text: list[str] = []
        self.ids: list[int] = []
        self.finish_reason: str | None = None

    def follow(self, pieces: Iterator["Piece"], bar: Bar, *, echo: bool) -> None:
        """Collects the pieces, and prints their text if `echo` is set.

        Ctrl-C ends it with the finish reason `interrupted`.
        """
        from ds4py.errors import Cancelled

        try:
            for piece in pieces:
                bar.close()
                self.text.append(piece.text)
                self.ids.extend(piece.tokens)
                self.finish_reason = piece.finish_reason
                if echo:
                    print(piece.text, end="", flush=True)
        except (KeyboardInterrupt, Cancelled):
            self.finish_reason = "interrupted"


def report(args: argparse.Namespace, engine: "Engine", session: "Session", result: Result) -> None:
    """Ends the output with the JSON object, or with a line end and the statistics."""
    stats = session.stats
    if args.json:
        print(json.dumps(summary(engine, stats, result), ensure_ascii=False))
        return
    print(flush=True)
    note(
        args,
        f"prompt {stats.prompt_tokens} tokens ({stats.prompt_tokens_per_second:.1f} tokens/s), "
        f"generated {stats.generated_tokens} ({stats.tokens_per_second:.1f} tokens/s), "
        f"seed {stats.seed}, ended: {REASONS[result.finish_reason]}",
    )
    note_speculation(args, stats.speculation)


REASONS = {
    None: "unfinished",
    "stop": "end of text",
    "length": "length limit (-n, or the context of -c)",
    "interrupted": "interrupted",
}


def summary(engine: "Engine", stats: Any, result: Result) -> Json:
    """Builds the object that `--json` prints. Times are in seconds unless their name says ms; rates are per second."""
    return {
        "model": model_facts(engine),
        "drafter": None if engine.drafter is None else asdict(engine.drafter),
        "prompt_tokens": stats.prompt_tokens,
        "ids": result.ids,
        "text": "".join(result.text),
        "finish_reason": result.finish_reason,
        "seed": stats.seed,
        "statistics": {
            "prompt_seconds": stats.prompt_seconds,
            "prompt_tokens_per_second": stats.prompt_tokens_per_second,
            "generated_tokens": stats.generated_tokens,
            "generate_seconds": stats.generate_seconds,
            "tokens_per_second": stats.tokens_per_second,
        },
        "speculation": stats.speculation.as_dict(),
    }
