"""Defines the command line `ds4py`. Each command is one file with `add_parser` for its flags and `run` for its work."""

import argparse
from collections.abc import Sequence

from ds4py.cli import chat, doctor, generate, inspect, perplexity, profile, replay, rpc_server, serve
from ds4py.console import Parser, PrintVersion, guarded

EPILOG = """\
exit codes: 0 done, 1 failed while running, 2 wrong usage, 3 bad model file, 130 interrupted (Ctrl-C),
141 the reader of the output went away. Messages go to standard error, results to standard output."""


def build_parser() -> argparse.ArgumentParser:
    """Builds the parser of all commands. The result of parsing carries the chosen command's function as `run`."""
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
    """Runs one command and returns its exit code.

    Every failure is one line on standard error (`ds4py.console.exits`).
    """

    def command() -> int:
        args = build_parser().parse_args(argv)
        code: int = args.run(args)
        return code

    return guarded("ds4py", command)
