"""`ds4py chat`: a conversation at the terminal."""

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
    chosen_draft_length,
    drafting_arguments,
    sampling_arguments,
)
from ds4py.cli.speculation import note_draft_length
from ds4py.console import Bar, exits, number
from ds4py.errors import Cancelled, Error

if TYPE_CHECKING:
    from ds4py import Sampling, Session
    from ds4py.cli.repl.commands import Commands
    from ds4py.cli.repl.screen import Screen
    from ds4py.cli.repl.talk import Talk

DESCRIPTION = """\
A conversation with the model: answers go to standard output as they are made, everything else to standard error.
/help lists the commands. Ctrl-C stops an answer and keeps what was said so far; Ctrl-D at the empty prompt leaves.
Where standard input is no terminal, each of its lines is a message, the output is plain text, and the exit code is 1 if
a line could not be answered or carried out."""


def add_parser(commands: "argparse._SubParsersAction[Any]") -> None:
    """Adds the command and its flags."""
    parser = add_command(commands, "chat", run, help="talk with a model", description=DESCRIPTION)
    add_model_flag(parser)
    group = parser.add_argument_group("conversation")
    group.add_argument("--system", metavar="TEXT", help="system text")
    group.add_argument("--think", action="store_true", help="let the model think before it answers")
    group.add_argument("--effort", metavar="LEVEL", help="effort of thinking, such as high or max (with --think)")
    group.add_argument(
        "-n", "--max-tokens", type=number(int, 1), metavar="N", help="tokens of an answer at most (default: no limit)"
    )
    add_sampling_flags(parser)
    add_drafting_flags(parser)
    add_engine_flags(parser, context_help="positions the conversation can take (default: chosen by the engine)")
    parser.add_argument("-q", "--quiet", action="store_true", help="no messages or progress, only errors")


def run(args: argparse.Namespace) -> int:
    """Talks until the person leaves; returns the exit code."""
    import ds4py
    from ds4py.cli.repl.commands import Commands
    from ds4py.cli.repl.screen import Screen
    from ds4py.cli.repl.talk import Talk

    if args.effort is not None and not args.think:
        raise exits.UsageError("--effort is the effort of thinking: add --think")
    sampling = ds4py.Sampling(**sampling_arguments(args, SAMPLING))
    with open_engine(args, args.model, args.drafter) as engine:
        note_draft_length(args, engine)
        session = engine.session(context=args.context, kv_dtype=args.kv_dtype)
        talk = Talk(engine, session, system=args.system, thinking=args.think, effort=args.effort)
        try:
            talk.check()
            done = converse(entered(args, talk), talk, Commands(talk, args), Screen(), args, sampling)
        finally:
            talk.session.close()
    return exits.OK if done or at_terminal() else exits.RUN_TIME


def at_terminal() -> bool:
    """Whether a person types, and sees what is said."""
    return sys.stdin.isatty() and sys.stdout.isatty()


def entered(args: argparse.Namespace, talk: "Talk") -> Iterable[str]:
    """The messages: from the keyboard, or the lines of standard input."""
    if at_terminal():
        from ds4py.cli.repl.keyboard import messages

        note(args, "/help lists the commands")
        return messages(lambda: status(args, talk))
    lines = enumerate(sys.stdin.buffer, 1)
    return (decode(line, f"line {number} of standard input").rstrip("\r\n") for number, line in lines)


def converse(
    messages: Iterable[str],
    talk: "Talk",
    commands: "Commands",
    screen: "Screen",
    args: argparse.Namespace,
    sampling: "Sampling",
) -> bool:
    """Answers messages and runs commands; whatever cannot be done is said, and the conversation goes on.

    Returns whether all could be done. Raises the OSError of standard output: there is nobody to go on for.
    """
    from ds4py.cli.repl.commands import Quit

    done = True
    for text in messages:
        try:
            if text.startswith("/"):
                commands.run(text)
            elif text.strip():
                answer(commands.message(text), talk, screen, args, sampling)
        except Quit:
            break
        except (Error, exits.UsageError) as error:
            done = False
            print(f"ds4py: {error}", file=sys.stderr, flush=True)
    return done


def answer(text: str, talk: "Talk", screen: "Screen", args: argparse.Namespace, sampling: "Sampling") -> None:
    """Prints the answer to a message as it comes; Ctrl-C stops it, and the session keeps what there is."""
    options = {"max_tokens": args.max_tokens, "sampling": sampling, **drafting_arguments(args)}
    stopped = False
    with Bar("message", quiet=args.quiet) as bar:
        try:
            for event in talk.say(text, progress=bar.update, **options):
                bar.close()
                screen.show(event)
        except (KeyboardInterrupt, Cancelled):
            stopped = True
        finally:
            bar.close()
            screen.end()
    if stopped:
        note(args, "stopped")


def status(args: argparse.Namespace, talk: "Talk") -> str:
    """The line below the prompt; what changes most comes first, because a narrow terminal cuts the end off."""
    session = talk.session
    parts = [
        f"{session.position}/{session.context} positions",
        f"think {'on' if talk.thinking else 'off'}",
        f"draft {args.draft}, draft length {chosen_draft_length(args)}",
    ]
    return " | ".join([*speed(session), *parts])


def speed(session: "Session") -> list[str]:
    """Tokens a second and acceptance of the last answer, where there was one."""
    stats = session.stats
    if not stats.generated_tokens:
        return []
    found = [f"{stats.tokens_per_second:.1f} tokens/s"]
    if stats.speculation.drafted:
        found.append(f"accepted {stats.speculation.acceptance:.0%}")
    return found
