"""Measures Python's overhead: tokens a second of `Session.generate`'s iterator and of the same cycles in a C program.

Usage: overhead.py [-m TARGET] [-md DRAFTER] [--loop PROGRAM] [-n 100] [--rounds 40] [-t 1] [--temps 0,0.7]

The C program is `ds4_loop` (bench/native/loop.c): `cmake --build build/dev --target ds4_loop`, with -DDS4_TESTS=ON.
Both sides generate the same tokens after the same prompt, with the same files and settings. They take turns: a round is
one text of each, and the side that begins alternates. The prompt is not timed. The iterator also turns tokens into
text, looks for stop strings, and keeps statistics. Figures are medians over the rounds. The ratio is shown twice: by
wall-clock time, with its quartiles, and by CPU time, which other programs disturb less.
"""

import argparse
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median, quantiles
from typing import NamedTuple

from arguments import positive
from machine import print_header

import ds4py
from ds4py import Engine, RequestError, Sampling, Session, data

PROMPT = "def quicksort(values):\n    "
LOOP = Path(__file__).resolve().parents[1] / "build" / "dev" / "bench" / "native" / "ds4_loop"
SEED = 7
HEAD = (
    f"{'temp':>5}{'length':>7}{'tokens':>8}{'cycles':>8}{'C tok/s':>9}{'iterator':>10}{'ratio':>7}{'(quartiles)':>17}"
    f"{'by CPU':>9}{'C us/cycle':>12}{'extra':>7}"
)


class Case(NamedTuple):
    """Settings of one generated text.

    Attributes:
        draft_length: the most proposals that a cycle verifies; 0 is plain decoding.
    """

    temperature: float
    draft_length: int


class Text(NamedTuple):
    """A text that one side generated.

    Attributes:
        seconds: wall-clock time after the prompt.
        busy: CPU seconds of all threads together.
        cycles: number of cycles after the first token.
    """

    seconds: float
    busy: float
    cycles: int
    tokens: list[int]


class Loop:
    """The C program, which generates one text at a time. Raises RequestError if it ends."""

    def __init__(self, program: Path, engine: Engine, context: int) -> None:
        drafter = engine.drafter.path if engine.drafter else "-"
        command = [program, engine.path, drafter, engine.device, str(engine.threads), str(context)]
        try:
            self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        except OSError as error:
            raise RequestError(f"{program}: {error.strerror}: build it (see --help), or name it with --loop") from None

    def generate(self, prompt: Sequence[int], case: Case, count: int) -> Text:
        """Generates a text of `count` tokens in the C program."""
        asked = [SEED, case.temperature, case.draft_length, count, len(prompt), *prompt]
        assert self._process.stdin and self._process.stdout
        print(*asked, file=self._process.stdin, flush=True)
        answer = self._process.stdout.readline().split()
        if not answer:
            raise RequestError(f"the C program ended with status {self._process.wait()}")
        return Text(float(answer[0]), float(answer[1]), int(answer[2]), list(map(int, answer[3:])))

    def close(self) -> None:
        """Ends the C program."""
        assert self._process.stdin and self._process.stdout
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()


def iterate(session: Session, prompt: Sequence[int], case: Case, count: int) -> Text:
    """Generates a text of up to `count` tokens with the iterator."""
    session.rewind(0)
    pieces = session.generate(
        prompt,
        max_tokens=count,
        sampling=Sampling(temperature=case.temperature, seed=SEED),
        draft="dspark" if case.draft_length else "off",
        draft_length=case.draft_length,
    )
    tokens: list[int] = []
    begin, busy = time.perf_counter(), time.process_time()
    for piece in pieces:
        tokens += piece.tokens
    seconds, busy = time.perf_counter() - begin, time.process_time() - busy
    return Text(seconds, busy, len(session.stats.speculation.cycles), tokens)


@dataclass
class Rounds:
    """The texts of both sides, by round; all have the same tokens and cycles."""

    python: list[Text] = field(default_factory=list)
    native: list[Text] = field(default_factory=list)

    @property
    def ratios(self) -> list[float]:
        """Tokens a second of the iterator divided by those of the C program, for each round."""
        return [theirs.seconds / ours.seconds for ours, theirs in zip(self.python, self.native, strict=True)]

    @property
    def busy_ratio(self) -> float:
        """Tokens a CPU second of the iterator divided by those of the C program: the median over the rounds."""
        return median(theirs.busy / ours.busy for ours, theirs in zip(self.python, self.native, strict=True))

    @property
    def extra(self) -> float:
        """Additional CPU microseconds of a cycle in Python: the median over the rounds."""
        pairs = zip(self.python, self.native, strict=True)
        return 1e6 * median((ours.busy - theirs.busy) / ours.cycles for ours, theirs in pairs)


def measure(session: Session, loop: Loop, prompt: Sequence[int], case: Case, count: int, rounds: int) -> Rounds:
    """Runs both sides in turns, after an untimed text of each. Raises RequestError if their texts or cycles differ."""
    first = iterate(session, prompt, case, count)
    found = Rounds()
    sides = {
        "python": lambda: iterate(session, prompt, case, count),
        "native": lambda: loop.generate(prompt, case, len(first.tokens)),
    }
    for number in range(-1, rounds):
        for side in sorted(sides, reverse=number % 2 == 1):
            text = sides[side]()
            if text[2:] != first[2:]:
                raise RequestError(f"{case}: the {side} side has {text[2:]}, wanted {first[2:]}")
            if number >= 0:
                getattr(found, side).append(text)
    return found


def cases(engine: Engine, temperatures: Sequence[float]) -> list[Case]:
    """Returns the cases: plain decoding and, with a drafter, its full block, at each temperature."""
    draft_lengths = [0, engine.drafter.block] if engine.drafter else [0]
    return [Case(temperature, draft_length) for draft_length in draft_lengths for temperature in temperatures]


def show(case: Case, found: Rounds) -> None:
    """Prints one line of the table."""
    low, middle, high = quantiles(found.ratios, n=4) if len(found.ratios) > 1 else found.ratios * 3
    tokens, cycles = len(found.native[0].tokens), found.native[0].cycles
    native, python = (median(tokens / each.seconds for each in texts) for texts in (found.native, found.python))
    busy = 1e6 * median(each.busy for each in found.native) / cycles
    print(
        f"{case.temperature:>5g}{case.draft_length:>7}{tokens:>8}{cycles:>8}{native:>9.0f}{python:>10.0f}"
        f"{middle:>7.3f} ({low:.3f} to {high:.3f}){found.busy_ratio:>9.3f}{busy:>12.0f}{found.extra:>7.0f}",
        flush=True,
    )


def numbers(text: str) -> list[float]:
    """Parses comma-separated numbers."""
    return [float(each) for each in text.split(",")]


def parser() -> argparse.ArgumentParser:
    """Returns the parser of the command line."""
    made = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("-m", "--model", help="default: the embedded pair")
    made.add_argument("-md", "--drafter")
    made.add_argument("--loop", type=Path, default=LOOP, metavar="PROGRAM")
    made.add_argument("-n", "--tokens", type=positive, default=100)
    made.add_argument("-c", "--context", type=positive, default=512)
    made.add_argument("-t", "--threads", type=positive, default=1)
    made.add_argument("--temps", type=numbers, default=[0.0, 0.7])
    made.add_argument("--rounds", type=positive, default=40)
    made.add_argument("--device", default="cpu")
    return made


@contextmanager
def opened(args: argparse.Namespace) -> Iterator[tuple[Engine, Session, Loop]]:
    """Opens an engine with a session, and the C program; closes them at the end."""
    drafter = args.drafter or (None if args.model else data.DRAFTER)
    model = args.model or data.TARGET
    with Engine(model, drafter=drafter, device=args.device, threads=args.threads) as engine:
        loop = Loop(args.loop, engine, args.context)
        try:
            yield engine, engine.session(context=args.context), loop
        finally:
            loop.close()


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the bench; returns the exit code."""
    args = parser().parse_args(arguments)
    try:
        with opened(args) as (engine, session, loop):
            print_header(
                engine.path, context=args.context, threads=engine.threads, device=engine.device, rounds=args.rounds
            )
            print(f"drafter  {engine.drafter or 'none'}")
            print("\n" + HEAD)
            prompt = engine.tokenizer.encode(PROMPT)
            for case in cases(engine, args.temps):
                show(case, measure(session, loop, prompt, case, args.tokens, args.rounds))
    except (ds4py.Error, OSError) as error:
        print(f"overhead.py: error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
