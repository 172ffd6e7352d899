"""`ds4py chat`: the live state only grows, the commands, the keyboard, Ctrl-C, pipes and a terminal."""

from __future__ import annotations

import argparse
import io
import os
import pty
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from generating import GREEDY
from gguf_tools import endless
from paths import GOLDEN
from prompt_toolkit.application import create_app_session
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput
from reading import read_some

import ds4py
from ds4py.chat import Content, Event, Reasoning, encode_chat, encode_turn
from ds4py.cli import build_parser, chat
from ds4py.cli.repl import keyboard
from ds4py.cli.repl.commands import Commands
from ds4py.cli.repl.conversation import Conversation
from ds4py.cli.repl.printer import AnswerPrinter
from ds4py.data import TARGET as EMBEDDED
from ds4py.errors import RequestError

EFFORT_TEMPLATE = (
    "{{ bos_token }}{% if reasoning_effort is defined %}Effort: {{ reasoning_effort }}. {% endif %}"
    "{{ messages[0].content }}"
)
COMMAND = [sys.executable, "-m", "ds4py", "chat"]


@pytest.fixture
def talk(embedded: ds4py.Engine) -> Iterator[Conversation]:
    made = Conversation(embedded, embedded.session(context=1024), system="Be brief.", thinking=False)
    yield made
    made.session.close()


def said(talk: Conversation, text: str, limit: int = 12) -> str:
    events = talk.reply(text, max_tokens=limit, sampling=GREEDY, draft="lookup", width=3)
    return "".join(event.text for event in events if isinstance(event, (Content, Reasoning)))


# The live state


def test_turns_only_extend_the_state(talk: Conversation, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every token of the conversation is evaluated once, verified proposals that did not stand aside."""
    prompts: list[int] = []
    prefill = ds4py.Session.prefill
    monkeypatch.setattr(
        ds4py.Session, "prefill", lambda self, ids, **more: (prompts.append(len(ids)), prefill(self, ids, **more))[1]
    )
    generated = 0
    for turn in range(5):
        talk.thinking = turn % 2 == 1
        said(talk, f"Message {turn}")
        generated += talk.session.stats.generated_tokens
    assert len(prompts) == 5 and talk.session.rewinds == 0
    assert sum(prompts) + generated == len(talk.session.history())


def test_the_state_is_the_layout_with_reasoning_kept(talk: Conversation, embedded: ds4py.Engine) -> None:
    tokenizer = embedded.tokenizer
    answers = [said(talk, text) for text in ("Hi", "And </think>?")]
    messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"}]
    messages += [{"role": "assistant", "content": answers[0]}, {"role": "user", "content": "And </think>?"}]
    wanted = tokenizer.decode(encode_chat(tokenizer, messages)) + answers[1]
    assert tokenizer.decode(talk.session.history()) == wanted


def test_thinking_that_was_cut_off_is_closed(talk: Conversation, embedded: ds4py.Engine) -> None:
    tokenizer = embedded.tokenizer
    talk.thinking = True
    said(talk, "Hi", 3)
    assert tokenizer.decode(talk.turn("More")) == "</think><｜end▁of▁sentence｜><｜User｜>More<｜Assistant｜><think>"
    assert talk.turn("More") == encode_turn(tokenizer, "More", thinking=True, in_thought=True)


def test_undo_takes_turns_back(talk: Conversation, embedded: ds4py.Engine) -> None:
    said(talk, "One")
    before = talk.session.history().tolist()
    second = said(talk, "Two")
    assert talk.undo()
    assert embedded.tokenizer.decode(talk.session.history()[: len(before)].tolist()) == embedded.tokenizer.decode(
        before
    )
    assert len(talk.session.history()) == len(before) + 1  # the end of the first answer stays
    assert said(talk, "Two") == second
    assert talk.undo() and talk.undo() and not talk.undo()
    assert talk.session.position == 0
    assert embedded.tokenizer.decode(talk.turn("One")).startswith("<｜begin▁of▁sentence｜>Be brief.")


def test_a_message_that_does_not_fit_changes_nothing(talk: Conversation) -> None:
    said(talk, "One")
    before = talk.session.history().tolist()
    with pytest.raises(RequestError):
        said(talk, "word " * 2000)
    assert talk.session.history().tolist() == before


# The conversation


class Interrupting(AnswerPrinter):
    """Where a person presses Ctrl-C when something is shown."""

    def show(self, event: Event) -> None:
        super().show(event)
        raise KeyboardInterrupt


def conversation(
    talk: Conversation, *lines: str, screen: AnswerPrinter | None = None, flags: tuple[str, ...] = ()
) -> tuple[str, argparse.Namespace]:
    """What is shown for these lines, and the flags afterwards."""
    args = build_parser().parse_args(["chat", "-n", "8", *flags])
    shown = io.StringIO()
    screen = screen or AnswerPrinter(shown)
    chat.converse(lines, talk, Commands(talk, args), screen, args, GREEDY)
    return shown.getvalue(), args


def test_ctrl_c_stops_the_answer_and_keeps_the_session(talk: Conversation, capsys: pytest.CaptureFixture[str]) -> None:
    shown = io.StringIO()
    conversation(talk, "Hi", screen=Interrupting(shown))
    assert "stopped" in capsys.readouterr().err
    kept = len(talk.session.history())
    assert shown.getvalue().strip() and talk.session.stats.generated_tokens < 8
    text, _ = conversation(talk, "Go on")
    assert text.strip() and talk.session.rewinds == 0 and len(talk.session.history()) > kept


def test_commands(talk: Conversation, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, state = tmp_path / "notes.txt", tmp_path / "state"
    file.write_text("Notes.\n", encoding="utf-8")
    _, args = conversation(
        talk,
        "/think",
        "/draft off",
        "/width 2",
        f"/read {file}",
        "What?",
        "/stats",
        f"/save {state}",
        "/help",
        "/system",
    )
    found = capsys.readouterr().err
    assert talk.thinking and (args.draft, args.width) == ("off", 2)
    assert "<｜User｜>Notes.\n\nWhat?<｜Assistant｜><think>" in talk.session.tokenizer.decode(talk.session.history())
    for words in ("answer 8 (", "/undo", "system: Be brief.", "7 characters"):
        assert words in found
    history = talk.session.history().tolist()
    conversation(talk, "/undo", "/nothink", "/system Be long.", f"/load {state}", "/quit", "never said")
    assert not talk.thinking and talk.system == "Be brief."  # that of what was loaded
    assert talk.session.history().tolist() == history


@pytest.mark.parametrize("system", [None, "Be brief </think>."])
@pytest.mark.parametrize("effort", [None, "high", "max"])
def test_what_is_loaded_brings_its_system_text(
    embedded: ds4py.Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, system: str | None, effort: str | None
) -> None:
    monkeypatch.setattr(ds4py.Tokenizer, "chat_template", EFFORT_TEMPLATE)
    saved = Conversation(embedded, embedded.session(context=512), system=system, thinking=True, effort=effort)
    said(saved, "Hi", 4)
    saved.save(str(tmp_path / "state"))
    loaded = Conversation(embedded, embedded.session(context=64), system="Other.", thinking=True, effort=effort)
    loaded.load(str(tmp_path / "state"))
    assert loaded.system == system
    assert loaded.undo()
    assert loaded.turn("Hi") == saved.session.history()[: len(loaded.turn("Hi"))].tolist()
    for each in (saved, loaded):
        each.session.close()


def test_a_vocabulary_without_chats_is_refused_at_the_start(tmp_path: Path) -> None:
    model = GOLDEN / "tiny-target-f32.gguf"
    done = subprocess.run([*COMMAND, "-q", "-m", model], input=b"Hi\n", capture_output=True, cwd=tmp_path, timeout=120)
    assert (done.returncode, done.stdout) == (2, b"")
    (line,) = done.stderr.decode().splitlines()
    assert "vocabulary lacks <｜" in line and line.endswith("continue plain text with ds4py generate")


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("/nope", "there is no /nope"),
        ("/draft someone", "wanted auto, off, dspark, lookup"),
        ("/width many", "is not a width"),
        ("/width 99", "out of range"),
        ("/undo", "no message to take back"),
        ("/think about it", "/think takes nothing after it, found 'about it'"),
        ("/read -", "name a file"),
        ("/draft", "draft: auto"),
        ("/width", "width: 15"),
        ("/save", "which file? /save FILE"),
        ("/save x", "nothing to save"),
        ("/read /nowhere/x", "/read /nowhere/x: No such file"),
        ("/load /nowhere/x", "/nowhere/x"),
        ("long " * 2000, "2"),
    ],
)
def test_what_cannot_be_done_is_said(
    talk: Conversation, capsys: pytest.CaptureFixture[str], line: str, words: str
) -> None:
    conversation(talk, line, "/help")
    found = capsys.readouterr().err
    assert words in found.splitlines()[0] and "/quit" in found


def test_dspark_without_a_drafter(embedded: ds4py.Engine, capsys: pytest.CaptureFixture[str]) -> None:
    alone = Conversation(embedded, embedded.session(context=64, drafter=False), system=None, thinking=False)
    conversation(alone, "/draft dspark")
    assert "no drafter was loaded" in capsys.readouterr().err


def test_thinking_is_shown_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    plain, styled = "<think>\na\x1b\n</think>\nb\r\n", "\x1b[2ma␛\x1b[0m\n\nb␍\n"
    uncoloured = plain.replace("\x1b", "␛").replace("\r", "␍")
    for out, no_color, wanted in (
        (io.StringIO(), "", plain),
        (Terminal(), "", styled),
        (Terminal(), "1", uncoloured),
    ):
        monkeypatch.setenv("NO_COLOR", no_color)
        screen = AnswerPrinter(out)
        for event in (Reasoning("a\x1b"), Content("b\r")):
            screen.show(event)
        screen.end()
        assert out.getvalue() == wanted


def test_the_status_line(talk: Conversation) -> None:
    args = build_parser().parse_args(["chat", "--draft", "lookup", "--width", "2"])
    assert chat.status(args, talk) == "0/1024 positions | think off | draft lookup, width 2"
    list(talk.reply("a b a b a b", max_tokens=12, sampling=GREEDY, draft="lookup", width=2))
    assert "tokens/s" in chat.status(args, talk)


# The keyboard


@pytest.fixture
def typed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The messages that keys make."""
    monkeypatch.setattr(keyboard, "user_state_path", lambda name: tmp_path / name)

    def run(keys: str) -> list[str]:
        with create_pipe_input() as pipe, create_app_session(input=pipe, output=DummyOutput()):
            pipe.send_text(keys)
            return list(keyboard.messages(lambda: "status"))

    return run


def test_enter_sends_and_alt_enter_begins_a_line(typed, tmp_path: Path) -> None:
    assert typed("Hi\rone\x1b\rtwo\r\x04") == ["Hi", "one\ntwo"]
    assert "+one\n+two\n" in (tmp_path / "ds4py" / "chat-history").read_text()


def test_pasted_lines_are_one_message(typed) -> None:
    assert typed("\x1b[200~a\nb\x1b[201~\r\x04") == ["a\nb"]


def test_ctrl_c_clears_what_was_typed_and_never_leaves(typed, capsys: pytest.CaptureFixture[str]) -> None:
    assert typed("no\x03yes\r\x03\x03later\r\x04") == ["yes", "later"]
    assert "Ctrl-D" in capsys.readouterr().err


def test_history_is_there_the_next_time(typed) -> None:
    assert typed("first\r\x04") == ["first"]
    assert typed("\x1b[A\r\x04") == ["first"]


def test_history_that_cannot_be_written(typed, tmp_path: Path) -> None:
    (tmp_path / "ds4py").write_text("a file")
    assert typed("Hi\r\x04") == ["Hi"]


# As a person runs it


def test_a_pipe(tmp_path: Path) -> None:
    lines = "Hi\n\n/nothink\n  \nAnd?\n/nope\n"
    flags = ["-n", "5", "--seed", "1", "--think", "--draft", "lookup"]
    done = subprocess.run([*COMMAND, *flags], input=lines.encode(), capture_output=True, cwd=tmp_path, timeout=120)
    out, err = done.stdout.decode(), done.stderr.decode()
    assert done.returncode == 1, err  # for /nope
    assert out.startswith("<think>\n") and "</think>\n" in out and "\x1b" not in out
    assert "there is no /nope" in err and "Traceback" not in err


@pytest.mark.parametrize(("lines", "code"), [("Hi\n/quit\n/nope\n", 0), ("Hi\n" + "word " * 300, 1)])
def test_a_pipe_says_whether_all_was_done(tmp_path: Path, lines: str, code: int) -> None:
    flags = ["-q", "-n", "4", "-c", "128"]
    done = subprocess.run([*COMMAND, *flags], input=lines.encode(), capture_output=True, cwd=tmp_path, timeout=120)
    assert done.returncode == code, done.stderr
    assert done.stdout.strip()


def test_a_reader_that_goes_away(tmp_path: Path) -> None:
    """The conversation ends: no later message is answered for nobody."""
    process = subprocess.Popen(
        [*COMMAND, "-n", "5", "-q"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=tmp_path
    )
    assert process.stdin is not None and process.stdout is not None
    process.stdout.close()
    process.stdin.write(b"Hi\nAnd?\n")
    process.stdin.flush()
    assert process.wait(timeout=120) == 141  # with standard input still open
    process.stdin = process.stdout = None
    assert process.communicate(timeout=60)[1] == b""


def test_lines_that_are_not_text(tmp_path: Path) -> None:
    done = subprocess.run([*COMMAND, "-q"], input=b"/stats\n\xff\n", capture_output=True, cwd=tmp_path, timeout=120)
    assert done.returncode == 2
    assert b"error: line 2 of standard input is not UTF-8 text: bad byte at offset 0" in done.stderr


@pytest.mark.parametrize("closed", ["<&-", ">&-"])
def test_streams_that_are_closed(tmp_path: Path, closed: str) -> None:
    line = f"echo Hi | '{sys.executable}' -m ds4py chat -n 4 -q {closed}"
    done = subprocess.run(["bash", "-c", line], capture_output=True, cwd=tmp_path, timeout=120)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_an_encoding_without_the_answers_characters(tmp_path: Path) -> None:
    environment = os.environ | {"PYTHONIOENCODING": "ascii"}
    script = "from ds4py import cli; cli.guarded('x', lambda: print('a\\u65e5b') or 0)"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, cwd=tmp_path, env=environment, timeout=120
    )
    assert done.stdout.strip() == b"a?b", done.stderr


def test_flags_that_do_not_fit(tmp_path: Path) -> None:
    done = subprocess.run([*COMMAND, "--effort", "max"], capture_output=True, cwd=tmp_path, timeout=120)
    assert done.returncode == 2 and b"add --think" in done.stderr


def test_a_terminal(tmp_path: Path) -> None:
    """Ctrl-C while an answer comes stops it, and /quit leaves."""
    person, terminal = pty.openpty()
    model = endless(EMBEDDED, tmp_path / "endless.gguf")
    environment = os.environ | {"XDG_STATE_HOME": str(tmp_path), "TERM": "xterm", "COLUMNS": "80"}
    command = [*COMMAND, "-m", str(model), "--temp", "0", "--draft", "off", "-c", "4096"]
    process = subprocess.Popen(
        command, stdin=terminal, stdout=terminal, stderr=terminal, cwd=tmp_path, env=environment, start_new_session=True
    )
    os.close(terminal)
    screen = Reader(person)
    try:
        screen.until("positions")
        os.write(person, b"Hi\r")
        screen.until("Hi")
        screen.more(2000)  # what is typed is shown again in less: an answer comes
        process.send_signal(signal.SIGINT)
        screen.until("stopped")
        screen.until("tokens/s")
        os.write(person, b"/quit\r")
        screen.until("/quit")
        assert process.wait(timeout=30) == 0
    finally:
        process.kill()
        process.wait(timeout=60)
        os.close(person)


class Reader:
    """What a terminal shows."""

    def __init__(self, handle: int) -> None:
        self._handle = handle
        self._shown = b""

    def until(self, words: str, seconds: float = 60) -> None:
        """Reads until the words are there; what is before them is done with."""
        end = time.monotonic() + seconds
        while words.encode() not in self._shown:
            assert time.monotonic() < end, self._shown[-2000:]
            self._read(end - time.monotonic())
        self._shown = self._shown.partition(words.encode())[2]

    def more(self, size: int, seconds: float = 60) -> None:
        """Reads so many bytes more."""
        end = time.monotonic() + seconds
        wanted = len(self._shown) + size
        while len(self._shown) < wanted:
            self._read(end - time.monotonic())

    def _read(self, seconds: float) -> None:
        self._shown += read_some(self._handle, seconds=seconds)
        if b"\x1b[6n" in self._shown:  # where is the cursor?
            os.write(self._handle, b"\x1b[1;1R")
            self._shown = self._shown.replace(b"\x1b[6n", b"")
