"""The commands of a conversation: lines that begin with a slash."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from typing import Final

from ds4py.cli.model import read_text
from ds4py.cli.options import DRAFTERS, chosen_draft_length, draft_length
from ds4py.cli.repl.talk import Talk
from ds4py.cli.speculation import note_speculation
from ds4py.errors import RequestError

HELP: Final = """\
/system [TEXT]  begin anew with this system text; alone: show it
/think          think before answering
/nothink        answer at once
/draft [WHO]    who proposes tokens: auto, off, dspark or lookup; alone: show it
/draft-length [N]
                proposals to verify at once: auto, confidence, ewma, staged or a number; alone: show it
/stats          what the last answer took
/read FILE      put a file before the next message
/save FILE      write the conversation's state to a file
/load FILE      go on with a saved one
/undo           take back the last message and its answer
/help           this
/quit           leave (Ctrl-D at the empty prompt, too)
Enter sends a message, Alt-Enter begins a new line; Ctrl-C stops an answer or clears what was typed."""


class Quit(Exception):
    """The conversation is over."""


class Commands:
    """Runs commands on a conversation and on the flags that its answers are made with (`--draft`, `--draft-length`)."""

    def __init__(self, talk: Talk, args: argparse.Namespace) -> None:
        self._talk = talk
        self._args = args
        self._before = ""
        self._known: dict[str, Callable[[str], None]] = {
            "system": self._system,
            "think": alone("think", lambda: self._think(True)),
            "nothink": alone("nothink", lambda: self._think(False)),
            "draft": self._draft,
            "draft-length": self._draft_length,
            "width": self._draft_length,  # the old name, for one more version
            "stats": alone("stats", self._stats),
            "read": self._read,
            "save": self._save,
            "load": self._load,
            "undo": alone("undo", self._undo),
            "help": alone("help", lambda: say(HELP)),
            "quit": alone("quit", self._quit),
        }

    def run(self, line: str) -> None:
        """Raises RequestError or UsageError for what cannot be done, and Quit."""
        name, _, rest = line.removeprefix("/").partition(" ")
        if name not in self._known:
            raise RequestError(f"there is no /{name}; /help lists what there is")
        self._known[name](rest.strip())

    def message(self, text: str) -> str:
        """A message, with the files that were read for it before it."""
        before, self._before = self._before, ""
        return before + text

    def _system(self, text: str) -> None:
        if text:
            self._talk.system = text
            self._talk.restart()
        say(f"system: {self._talk.system or '(none)'}")

    def _think(self, thinking: bool) -> None:
        self._talk.thinking = thinking

    def _draft(self, who: str) -> None:
        if not who:
            say(f"draft: {self._args.draft}")
            return
        if who not in DRAFTERS:
            raise RequestError(f"/draft {who}: wanted {', '.join(DRAFTERS)}")
        if who == "dspark" and self._talk.session.drafter is None:
            raise RequestError("/draft dspark: no drafter was loaded (-md FILE)")
        self._args.draft = who

    def _draft_length(self, text: str) -> None:
        if not text:
            say(f"draft length: {chosen_draft_length(self._args)}")
            return
        try:
            self._args.draft_length = draft_length(text)
        except argparse.ArgumentTypeError as error:
            raise RequestError(f"/draft-length: {error}") from None

    def _stats(self) -> None:
        session = self._talk.session
        stats = session.stats
        say(
            f"{session.position} of {session.context} positions; last message {stats.prompt_tokens} tokens "
            f"({stats.prompt_tokens_per_second:.1f} tokens/s), answer {stats.generated_tokens} "
            f"({stats.tokens_per_second:.1f} tokens/s), seed {stats.seed}"
        )
        note_speculation(self._args, stats.speculation)

    def _read(self, path: str) -> None:
        if path == "-":
            raise RequestError("/read -: standard input has the messages; name a file")
        try:
            text = read_text(required(path, "/read FILE"))
        except OSError as error:
            raise RequestError(f"/read {path}: {error.strerror}") from None
        self._before += text.removesuffix("\n") + "\n\n"
        say(f"{path}: {len(text)} characters, before the next message")

    def _save(self, path: str) -> None:
        self._talk.save(required(path, "/save FILE"))
        say(f"{path}: {self._talk.session.position} positions")

    def _load(self, path: str) -> None:
        self._talk.load(required(path, "/load FILE"))
        say(f"{self._talk.session.position} positions")

    def _undo(self) -> None:
        if not self._talk.undo():
            raise RequestError("/undo: there is no message to take back")
        say(f"{self._talk.session.position} positions")

    def _quit(self) -> None:
        raise Quit


def alone(name: str, act: Callable[[], None]) -> Callable[[str], None]:
    """A command that takes nothing; what follows it would be lost, and is refused."""

    def run(rest: str) -> None:
        if rest:
            raise RequestError(f"/{name} takes nothing after it, found {rest!r}")
        act()

    return run


def required(path: str, usage: str) -> str:
    """A command's file. Raises RequestError where none is named."""
    if not path:
        raise RequestError(f"which file? {usage}")
    return path


def say(text: str) -> None:
    """A line for the person, apart from the answers."""
    print(text, file=sys.stderr, flush=True)
