"""The command line `ds4py`: one file a command, each with `add_parser` (its flags) and `run` (its work)."""

import argparse
import sys
from collections.abc import Callable, Sequence

from ds4py.cli import chat, doctor, exits, generate, inspect, perplexity, profile, replay, rpc_server, serve
from ds4py.cli.options import Parser, PrintVersion

EPILOG = """\
exit codes: 0 done, 1 failed while running, 2 wrong usage, 3 bad model file, 130 interrupted (Ctrl-C),
141 the reader of the output went away. Messages go to standard error, results to standard output."""


def build_parser() -> argparse.ArgumentParser:
    """The whole command line; a parsed command carries its function as `run`."""
    parser = Parser(
        prog="ds4py",
        description="Run DeepSeek-V4 models from GGUF files.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action=PrintVersion)
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for command in (chat, doctor, generate, inspect, perplexity, profile, replay, rpc_server, serve):
        command.add_parser(commands)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command and returns its exit code (see `ds4py.cli.exits`); every failure is one line on stderr."""

    def command() -> int:
        args = build_parser().parse_args(argv)
        code: int = args.run(args)
        return code

    return guarded("ds4py", command)


def guarded(program: str, command: Callable[[], int], *, interrupted: str = "") -> int:
    """The exit code of `command`; a failure is one line on stderr, and so is `interrupted`, where given, on Ctrl-C."""
    exits.prepare_streams()
    try:
        code = command()
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        exits.silence_stdout()
        return exits.BROKEN_PIPE
    except KeyboardInterrupt:
        if interrupted:
            print(f"{program}: {interrupted}", file=sys.stderr)
        return exits.INTERRUPTED
    except Exception as error:
        code = exit_code(error)
        print(f"{program}: error: {describe(error)}", file=sys.stderr)
        return code


def describe(error: Exception) -> str:
    """The failure in one line."""
    if isinstance(error, OSError) and error.strerror is not None:
        return error.strerror if error.filename is None else f"{error.filename}: {error.strerror}"
    if isinstance(error, MemoryError):
        return "out of memory (a smaller context, -c, needs less)"
    return " ".join(str(error).split())


def exit_code(error: Exception) -> int:
    """The exit code of a failure; an exception that is none of ours is a bug and is raised again."""
    from ds4py import errors

    codes: list[tuple[type[Exception], int]] = [
        (exits.UsageError, exits.USAGE),
        (errors.RequestError, exits.USAGE),
        (errors.FormatError, exits.BAD_FILE),
        (errors.PairError, exits.BAD_FILE),
        (errors.Cancelled, exits.INTERRUPTED),
        (errors.Error, exits.RUN_TIME),
        (OSError, exits.RUN_TIME),
        (MemoryError, exits.RUN_TIME),
    ]
    for kind, code in codes:
        if isinstance(error, kind):
            return code
    raise error
