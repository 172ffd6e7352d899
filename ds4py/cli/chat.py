"""Defines `ds4py chat`, a conversation at the terminal."""

import argparse
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from ds4py.cli.model import decode, note, open_engine
from ds4py.cli.options import (
    SAMPLING,
    add_command,
    add_drafting_flags,
    add_engine_flags,
    add_model_flag,
    add_sampling_flags,
    chosen_width,
    drafting_arguments,
    sampling_arguments,
)
from ds4py.cli.speculation import note_width
from ds4py.console import Bar, exits, number
from ds4py.errors import Cancelled, Error

if TYPE_CHECKING:
    from ds4py import Sampling, Session
    from ds4py.cli.repl.commands import Commands
    from ds4py.cli.repl.conversation import Conversation
    from ds4py.cli.repl.printer import AnswerPrinter

DESCRIPTION = """\
Holds a conversation with the model. Answers go to standard output while they are generated, everything else goes to
standard error. /help lists the commands. Ctrl-C stops an answer and keeps the part that exists. Ctrl-D at the empty
prompt leaves. If standard input is not a terminal, each of its lines is a message, the output is plain text, and the
exit code is 1 if a line could not be answered or carried out."""


def add_parser(commands: "argparse._SubParsersAction[Any]") -> None:
    """Adds the command and its flags."""
    parser = add_command(commands, "chat", run, help="talk with a model", description=DESCRIPTION)
    add_model_flag(parser)
    group = parser.add_argument_group("conversation")
    group.add_argument("--system", metavar="TEXT", help="system text")
    group.add_argument("--think", action="store_true", help="let the model think before it answers")
    group.add_argument("--effort", metavar="LEVEL", help="effort of thinking, such as high or max (with --think)")
    group.add_argument(
        "-n", "--max-tokens", type=number(int, 1), metavar="N", help="most tokens of an answer (default: no limit)"
    )
    add_sampling_flags(parser)
    add_drafting_flags(parser)
    add_engine_flags(parser, context_help="positions the conversation can take (default: chosen by the engine)")
    parser.add_argument("-q", "--quiet", action="store_true", help="no messages or progress, only errors")


def run(args: argparse.Namespace) -> int:
    """Holds a conversation until the user leaves, and returns the exit code."""
    import ds4py
    from ds4py.cli.repl.commands import Commands
    from ds4py.cli.repl.conversation import Conversation
    from ds4py.cli.repl.printer import AnswerPrinter

    if args.effort is not None and not args.think:
        raise exits.UsageError("--effort is the effort of thinking: add --think")
    sampling = ds4py.Sampling(**sampling_arguments(args, SAMPLING))
    with open_engine(args, args.model, args.drafter) as engine:
        note_width(args, engine)
        session = engine.session(context=args.context, kv_dtype=args.kv_dtype)
        conversation = Conversation(engine, session, system=args.system, thinking=args.think, effort=args.effort)
        try:
            conversation.check()
            done = converse(
                input_messages(args, conversation),
                conversation,
                Commands(conversation, args),
                AnswerPrinter(),
                args,
                sampling,
            )
        finally:
            conversation.session.close()
    return exits.OK if done or at_terminal() else exits.RUN_TIME


def at_terminal() -> bool:
    """Tells whether both standard input and standard output are terminals."""
    return sys.stdin.isatty() and sys.stdout.isatty()


def input_messages(args: argparse.Namespace, conversation: "Conversation") -> Iterable[str]:
    """Yields the user's messages, from the keyboard at a terminal and else from the lines of standard input."""
    if at_terminal():
        from ds4py.cli.repl.keyboard import messages

        note(args, "/help lists the commands")
        return messages(lambda: status(args, conversation))
    lines = enumerate(sys.stdin.buffer, 1)
    return (decode(line, f"line {number} of standard input").rstrip("\r\n") for number, line in lines)


def converse(
    messages: Iterable[str],
    conversation: "Conversation",
    commands: "Commands",
    printer: "AnswerPrinter",
    args: argparse.Namespace,
    sampling: "Sampling",
) -> bool:
    """Answers messages and runs commands. A message that fails prints its error, and the conversation goes on.

    Returns whether all messages succeeded. Raises the OSError of standard output.
    """
    from ds4py.cli.repl.commands import Quit

    done = True
    for text in messages:
        try:
            if text.startswith("/"):
                commands.run(text)
            elif text.strip():
                answer(commands.message(text), conversation, printer, args, sampling)
        except Quit:
            break
        except (Error, exits.UsageError) as error:
            done = False
            print(f"ds4py: {error}", file=sys.stderr, flush=True)
    return done


def answer(
    text: str, conversation: "Conversation", printer: "AnswerPrinter", args: argparse.Namespace, sampling: "Sampling"
) -> None:
    """Prints the answer to a message while it is generated.

    Ctrl-C stops the answer, and the session keeps what it has.
    """
    options = {"max_tokens": args.max_tokens, "sampling": sampling, **drafting_arguments(args)}
    stopped = False
    with Bar("message", quiet=args.quiet) as bar:
        try:
            for event in conversation.reply(text, progress=bar.update, **options):
                bar.close()
                printer.show(event)
        except (KeyboardInterrupt, Cancelled):
            stopped = True
        finally:
            bar.close()
            printer.end()
    if stopped:
        note(args, "stopped")


def status(args: argparse.Namespace, conversation: "Conversation") -> str:
    """Formats the line below the prompt. What changes most comes first, because a narrow terminal cuts the end off."""
    session = conversation.session
    parts = [
        f"{session.position}/{session.context} positions",
        f"think {'on' if conversation.thinking else 'off'}",
        f"draft {args.draft}, width {chosen_width(args)}",
    ]
    return " | ".join([*speed(session), *parts])


def speed(session: "Session") -> list[str]:
    """Formats tokens per second and acceptance of the latest answer. The list is empty before the first answer."""
    stats = session.stats
    if not stats.generated_tokens:
        return []
    found = [f"{stats.tokens_per_second:.1f} tokens/s"]
    if stats.speculation.drafted:
        found.append(f"accepted {stats.speculation.acceptance:.0%}")
    return found
