"""`ds4py generate`: continues a prompt."""

import argparse
import json
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ds4py.cli import exits
from ds4py.cli.exits import UsageError
from ds4py.cli.model import note, open_engine, read_text
from ds4py.cli.options import add_engine_flags, add_output_flags, number, sampling_arguments, token_ids
from ds4py.cli.progress import Bar

if TYPE_CHECKING:
    from ds4py import Engine, Piece, Session

DEFAULT_MAX_TOKENS = 256

DESCRIPTION = f"""\
Continues a prompt: text goes to standard output as it is made, messages to standard error.
The prompt comes from -p, -f or --prompt-ids, or from standard input when that is not a terminal; one line end at the
end of a file or of standard input is dropped. It stops at the model's end token, at a --stop text, after
{DEFAULT_MAX_TOKENS} tokens unless -n says otherwise, and where the context is full."""

SAMPLING = (
    "temperature",
    "top_k",
    "top_p",
    "min_p",
    "repetition_penalty",
    "presence_penalty",
    "frequency_penalty",
    "penalty_last_n",
    "seed",
)


def add_parser(commands: "argparse._SubParsersAction[Any]") -> None:
    """Adds the command and its flags."""
    parser = commands.add_parser(
        "generate",
        help="continue a prompt",
        description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.set_defaults(run=run)
    parser.add_argument("-m", "--model", metavar="FILE", help="target model (GGUF); default: an embedded tiny one")
    add_prompt_flags(parser)
    add_length_flags(parser)
    add_sampling_flags(parser)
    add_engine_flags(parser, context_help="positions the session can hold (default: chosen by the engine)")
    add_output_flags(parser)


def add_prompt_flags(parser: argparse.ArgumentParser) -> None:
    """Adds the ways to give a prompt."""
    group = parser.add_argument_group("prompt")
    sources = group.add_mutually_exclusive_group()
    sources.add_argument("-p", "--prompt", metavar="TEXT")
    sources.add_argument("-f", "--file", metavar="FILE", help="read the prompt from a UTF-8 file; - is standard input")
    sources.add_argument("--prompt-ids", type=token_ids, metavar="1,2,3", help="token ids instead of text")
    group.add_argument("--chat", action="store_true", help="put the prompt into the official chat layout, as the user")
    group.add_argument("--system", metavar="TEXT", help="system text (with --chat)")
    group.add_argument(
        "--think", action=argparse.BooleanOptionalAction, default=None, help="let the model think (with --chat)"
    )
    group.add_argument("--effort", metavar="LEVEL", help="effort of thinking, such as high or max (with --think)")


def add_length_flags(parser: argparse.ArgumentParser) -> None:
    """Adds what ends the text."""
    group = parser.add_argument_group("length")
    group.add_argument(
        "-n",
        "--max-tokens",
        type=number(int, -1),
        default=DEFAULT_MAX_TOKENS,
        metavar="N",
        help=f"tokens at most (default: {DEFAULT_MAX_TOKENS}; -1: until the end token or a full context)",
    )
    group.add_argument(
        "--stop", action="append", default=[], metavar="TEXT", help="end before this text (may be repeated)"
    )


def add_sampling_flags(parser: argparse.ArgumentParser) -> None:
    """Adds the sampling policy; flags that are not given keep the defaults of `ds4py.Sampling`."""
    group = parser.add_argument_group("sampling")

    def add(flag: str, name: str, kind: Any, text: str) -> None:
        group.add_argument(flag, dest=name, type=kind, metavar="X", help=text)

    add("--temp", "temperature", number(float, 0), "temperature; 0 is greedy (default: 1)")
    add("--top-k", "top_k", number(int, 0), "keep the k likeliest tokens (default: 0, off)")
    add("--top-p", "top_p", number(float, 0, 1), "keep the likeliest tokens that reach p (default: 1, off)")
    add("--min-p", "min_p", number(float, 0, 1), "drop tokens under p times the likeliest (default: 0, off)")
    add("--repeat-penalty", "repetition_penalty", number(float, 0), "divide logits of seen tokens (default: 1, off)")
    add("--presence-penalty", "presence_penalty", number(float), "subtract once per seen token (default: 0)")
    add("--frequency-penalty", "frequency_penalty", number(float), "subtract per occurrence (default: 0)")
    add("--repeat-last-n", "penalty_last_n", number(int, -1), "tokens that count as seen (default: -1, all)")
    add("--seed", "seed", number(int, 0, 2**64 - 1), "seed of the draws (default: a new one, which is reported)")


def run(args: argparse.Namespace) -> int:
    """Generates and prints; returns the exit code."""
    import ds4py

    check_chat_flags(args)
    text = prompt_text(args)
    sampling = ds4py.Sampling(**sampling_arguments(args, SAMPLING))
    with open_engine(args, args.model) as engine:
        prompt = args.prompt_ids if text is None else encode(args, engine, text)
        with engine.session(context=args.context, kv_dtype=args.kv_dtype) as session:
            result = Result()
            limit = None if args.max_tokens < 0 else args.max_tokens
            with Bar("prompt", quiet=args.quiet) as bar:

                def pieces() -> Iterator["Piece"]:
                    # The prompt runs in this call, not with the first piece.
                    yield from session.generate(
                        prompt, max_tokens=limit, sampling=sampling, stop=args.stop, progress=bar.update
                    )

                result.follow(pieces(), bar, echo=not args.json)
            report(args, engine, session, result)
    return exits.INTERRUPTED if result.finish_reason == "interrupted" else exits.OK


def check_chat_flags(args: argparse.Namespace) -> None:
    """Raises UsageError for flags that need another one."""
    if args.chat and args.prompt_ids is not None:
        raise UsageError("--chat lays out text: give -p, -f or standard input instead of --prompt-ids")
    for flag, given in (("--system", args.system), ("--think/--no-think", args.think), ("--effort", args.effort)):
        if given is not None and not args.chat:
            raise UsageError(f"{flag} belongs to the chat layout: add --chat")
    if args.effort is not None and not args.think:
        raise UsageError("--effort is the effort of thinking: add --think")


def prompt_text(args: argparse.Namespace) -> str | None:
    """The prompt's text, or None where ids were given."""
    if args.prompt_ids is not None:
        return None
    if args.prompt is not None:
        text: str = args.prompt
    elif args.file is not None:
        text = read_text(args.file).removesuffix("\n").removesuffix("\r")
    elif sys.stdin is not None and not sys.stdin.isatty():
        text = read_text("-").removesuffix("\n").removesuffix("\r")
    else:
        raise UsageError("no prompt: give -p TEXT, -f FILE, --prompt-ids, or text on standard input")
    if not text:
        raise UsageError("the prompt is empty")
    return text


def encode(args: argparse.Namespace, engine: "Engine", text: str) -> str | list[int]:
    """The prompt as the engine takes it: the text itself, or the ids of the chat layout."""
    if not args.chat:
        return text
    from ds4py import chat

    messages = [{"role": "user", "content": text}]
    if args.system is not None:
        messages.insert(0, {"role": "system", "content": args.system})
    return chat.encode_chat(engine.tokenizer, messages, thinking=bool(args.think), effort=args.effort)


class Result:
    """What has been generated so far, kept also when it is interrupted."""

    def __init__(self) -> None:
        self.text: list[str] = []
        self.ids: list[int] = []
        self.finish_reason: str | None = None

    def follow(self, pieces: Iterator["Piece"], bar: Bar, *, echo: bool) -> None:
        """Collects the pieces, printing their text as it comes; Ctrl-C ends it with reason `interrupted`."""
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
    """Ends the output: the JSON object, or a line end and the statistics."""
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


REASONS = {
    None: "unfinished",
    "stop": "end of text",
    "length": "length limit (-n, or the context of -c)",
    "interrupted": "interrupted",
}


def summary(engine: "Engine", stats: Any, result: Result) -> dict[str, Any]:
    """The object that `--json` prints; times in seconds, rates in tokens per second."""
    return {
        "model": {"name": engine.name, "path": str(engine.path), "embedded": engine.embedded},
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
    }
