"""Defines the flags of the prompt and of the length, and reads the prompt that they name."""

import argparse
import sys
from typing import TYPE_CHECKING

from ds4py.cli.model import read_text
from ds4py.cli.options import token_ids
from ds4py.console import UsageError, number

if TYPE_CHECKING:
    from ds4py import Engine

DEFAULT_MAX_TOKENS = 256


def add_prompt_flags(parser: argparse.ArgumentParser) -> None:
    """Adds the flags that give a prompt."""
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
    """Adds the flags that end the text."""
    group = parser.add_argument_group("length")
    group.add_argument(
        "-n",
        "--max-tokens",
        type=number(int, -1),
        default=DEFAULT_MAX_TOKENS,
        metavar="N",
        help=f"most tokens to generate (default: {DEFAULT_MAX_TOKENS}; -1: until the end token or a full context)",
    )
    group.add_argument(
        "--stop", action="append", default=[], metavar="TEXT", help="end before this text (may be repeated)"
    )


def check_chat_flags(args: argparse.Namespace) -> None:
    """Raises UsageError for flags that need another flag."""
    if args.chat and args.prompt_ids is not None:
        raise UsageError("--chat lays out text: give -p, -f or standard input instead of --prompt-ids")
    for flag, given in (("--system", args.system), ("--think/--no-think", args.think), ("--effort", args.effort)):
        if given is not None and not args.chat:
            raise UsageError(f"{flag} belongs to the chat layout: add --chat")
    if args.effort is not None and not args.think:
        raise UsageError("--effort is the effort of thinking: add --think")


def token_limit(args: argparse.Namespace) -> int | None:
    """Returns `--max-tokens` as the engine takes it, with None for no limit."""
    return None if args.max_tokens < 0 else int(args.max_tokens)


def prompt_text(args: argparse.Namespace) -> str | None:
    """Returns the text of the prompt, or None if token ids were given.

    Raises UsageError if there is no prompt, if it is empty, or if its flags contradict each other.
    """
    check_chat_flags(args)
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


def encode(args: argparse.Namespace, engine: "Engine", text: str | None) -> list[int]:
    """Returns the token ids of the prompt; `text` is the result of `prompt_text`."""
    if text is None:
        ids: list[int] = args.prompt_ids
        return ids
    if not args.chat:
        return engine.tokenizer.encode(text)
    from ds4py import chat

    messages = [{"role": "user", "content": text}]
    if args.system is not None:
        messages.insert(0, {"role": "system", "content": args.system})
    return chat.encode_chat(engine.tokenizer, messages, thinking=bool(args.think), effort=args.effort)
