"""Runs the commands of a conversation, which are lines that begin with a slash."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from typing import Final

from ds4py.cli.model import read_text
from ds4py.cli.options import DRAFTERS, chosen_width, width
from ds4py.cli.repl.conversation import Conversation
from ds4py.cli.speculation import note_speculation
from ds4py.errors import RequestError

HELP: Final = """\
/system [TEXT]  begin anew with this system text; alone: show it
/think          think before answering
/nothink        answer at once
/draft [WHO]    who proposes tokens: auto, off, dspark or lookup; alone: show it
/width [N]      proposals to verify at once: auto, confidence, ewma, staged or a number; alone: show it
/stats          what the last answer took
/read FILE      put a file before the next message
/save FILE      write the conversation's state to a file
/load FILE      go on with a saved one
/undo           take back the last message and its answer
/help           this
/quit           leave (Ctrl-D at the empty prompt, too)
Enter sends a message, Alt-Enter begins a new line; Ctrl-C stops an answer or clears what was typed."""


class Quit(Exception):
    """Raised when the user leaves the conversation."""


class Commands:
    """Runs commands, which change the conversation or the flags of its answers (`--draft`, `--width`)."""

    def __init__(self, conversation: Conversation, args: argparse.Namespace) -> None:
        self._conversation = conversation
        self._args = args
        self._before = ""
        self._known: dict[str, Callable[[str], None]] = {
            "system": self._system,
            "think": without_argument("think", lambda: self._think(True)),
            "nothink": without_argument("nothink", lambda: self._think(False)),
            "draft": self._draft,
            "width": self._width,
            "stats": without_argument("stats", self._stats),
            "read": self._read,
            "save": self._save,
            "load": self._load,
            "undo": without_argument("undo", self._undo),
            "help": without_argument("help", lambda: print_line(HELP)),
            "quit": without_argument("quit", self._quit),
        }

    def run(self, line: str) -> None:
        """Runs one command line.

        Raises RequestError or UsageError for a command that cannot be carried out, and Quit for `/quit`.
        """
        name, _, rest = line.removeprefix("/").partition(" ")
        if name not in self._known:
            raise RequestError(f"there is no /{name}; /help lists what there is")
        self._known[name](rest.strip())

    def message(self, text: str) -> str:
        """Returns a message behind the text of the files that `/read` has read for it."""
        before, self._before = self._before, ""
        return before + text

    def _system(self, text: str) -> None:
        if text:
            self._conversation.system = text
            self._conversation.restart()
        print_line(f"system: {self._conversation.system or '(none)'}")

    def _think(self, thinking: bool) -> None:
        self._conversation.thinking = thinking

    def _draft(self, who: str) -> None:
        if not who:
            print_line(f"draft: {self._args.draft}")
            return
        if who not in DRAFTERS:
            raise RequestError(f"/draft {who}: wanted {', '.join(DRAFTERS)}")
        if who == "dspark" and self._conversation.session.drafter is None:
            raise RequestError("/draft dspark: no drafter was loaded (-md FILE)")
        self._args.draft = who

    def _width(self, text: str) -> None:
        if not text:
            print_line(f"width: {chosen_width(self._args)}")
            return
        try:
            self._args.width = width(text)
        except argparse.ArgumentTypeError as error:
            raise RequestError(f"/width: {error}") from None

    def _stats(self) -> None:
        session = self._conversation.session
        stats = session.stats
        print_line(
            f"{session.position} of {session.context} positions; last message {stats.prompt_tokens} tokens "
            f"({stats.prompt_tokens_per_second:.1f} tokens/s), answer {stats.generated_tokens} "
            f"({stats.tokens_per_second:.1f} tokens/s), seed {stats.seed}"
        )
        note_speculation(self._args, stats.speculation)

    def _read(self, path: str) -> None:
        if path == "-":
            raise RequestError("/read -: standard input has the messages; name a file")
        try:
            text = read_text(required_path(path, "/read FILE"))
        except OSError as error:
            raise RequestError(f"/read {path}: {error.strerror}") from None
        self._before += text.removesuffix("\n") + "\n\n"
        print_line(f"{path}: {len(text)} characters, before the next message")

    def _save(self, path: str) -> None:
        self._conversation.save(required_path(path, "/save FILE"))
        print_line(f"{path}: {self._conversation.session.position} positions")

    def _load(self, path: str) -> None:
        self._conversation.load(required_path(path, "/load FILE"))
        print_line(f"{self._conversation.session.position} positions")

    def _undo(self) -> None:
        if not self._conversation.undo():
            raise RequestError("/undo: there is no message to take back")
        print_line(f"{self._conversation.session.position} positions")

    def _quit(self) -> None:
        raise Quit


def without_argument(name: str, act: Callable[[], None]) -> Callable[[str], None]:
    """Wraps a command that takes no argument, so that it raises RequestError if it is given one."""

    def run(rest: str) -> None:
        if rest:
            raise RequestError(f"/{name} takes nothing after it, found {rest!r}")
        act()

    return run


def required_path(path: str, usage: str) -> str:
    """Returns the path of a command. Raises RequestError if it is empty."""
    if not path:
        raise RequestError(f"which file? {usage}")
    return path


def print_line(text: str) -> None:
    """Prints a line on standard error, apart from the answers."""
    print(text, file=sys.stderr, flush=True)
