"""How much Python a cycle takes: calls, which are the same on every machine, and memory.

Times are for `bench/overhead.py`, whose run is tested in test_native.py.
"""

from __future__ import annotations

import sys
import tracemalloc
from collections.abc import Iterator
from types import FrameType

import pytest
from device import DEVICE

import ds4py
from ds4py import Engine, Piece, Sampling, Session, data

WARM, CYCLES = 8, 24


@pytest.fixture(scope="module")
def session() -> Iterator[Session]:
    with Engine(data.TARGET, drafter=data.DRAFTER, device=DEVICE, threads=1) as engine:
        yield engine.session(context=512)


def warm(session: Session, temperature: float, width: int) -> Iterator[Piece]:
    """A generation after its first cycles, which build graphs."""
    session.rewind(0)
    sampling = Sampling(temperature=temperature, seed=7)
    draft: ds4py.speculative.Choice = "dspark" if width else "off"
    pieces = session.generate("def quicksort(values):\n", sampling=sampling, draft=draft, width=width, max_tokens=400)
    for _ in range(WARM):
        next(pieces)
    return pieces


def calls(pieces: Iterator[Piece]) -> float:
    """Functions called a cycle, of Python and of C."""
    count = 0

    def seen(frame: FrameType, event: str, argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(seen)
    try:
        for _ in range(CYCLES):
            next(pieces)
    finally:
        sys.setprofile(None)
    return count / CYCLES


@pytest.mark.parametrize("temperature", [0.0, 0.7])
@pytest.mark.parametrize(("width", "most"), [(0, 125), (5, 250)])
def test_a_cycle_calls_few_functions(session: Session, temperature: float, width: int, most: int) -> None:
    assert calls(warm(session, temperature, width)) <= most


def peak(pieces: Iterator[Piece]) -> int:
    """Bytes that Python and NumPy allocate at once in a cycle, at most; a view's rows are not among them."""
    found = 0
    tracemalloc.start()
    try:
        for _ in range(CYCLES):
            tracemalloc.reset_peak()
            before = tracemalloc.get_traced_memory()[0]
            next(pieces)
            found = max(found, tracemalloc.get_traced_memory()[1] - before)
    finally:
        tracemalloc.stop()
    return found


@pytest.mark.parametrize("temperature", [0.0, 0.7])
def test_a_plain_cycle_copies_no_row_of_logits(session: Session, temperature: float) -> None:
    assert peak(warm(session, temperature, 0)) < 4 * session.tokenizer.vocab_size


def test_a_drafted_cycle_holds_one_q_and_copies_no_logits(session: Session) -> None:
    row, block = 4 * session.tokenizer.vocab_size, 5
    assert block * row <= peak(warm(session, 0.7, 5)) < (block + 1) * row


def test_the_memory_of_a_copied_row_is_seen(session: Session) -> None:
    """What the two above would find."""

    def copying() -> Iterator[Piece]:
        for piece in warm(session, 0.0, 0):
            copy = session.logits().copy()
            yield piece
            del copy

    assert peak(copying()) >= 4 * session.tokenizer.vocab_size
