"""Measures verifies of every width, drafts and plain steps, which take turns."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from ds4py.constants import MAX_ROWS
from ds4py.errors import RequestError
from ds4py.json_types import Json
from ds4py.profile.depth_costs import DepthCosts
from ds4py.speculative import PromptLookupDrafter
from ds4py.speculative.dspark import DSparkDrafter

if TYPE_CHECKING:
    from ds4py.runtime.engine import Engine
    from ds4py.runtime.session import Session

ROUNDS = 7

Progress = Callable[[float], None]


@dataclass(frozen=True)
class Profile:
    """The costs of an engine at several depths."""

    depths: tuple[DepthCosts, ...]

    def as_dict(self) -> Json:
        """Returns plain values. Times are in milliseconds."""
        return {"depths": [each.as_dict() for each in self.depths]}


def measure(
    engine: Engine,
    depths: Sequence[int] = (0,),
    *,
    rounds: int = ROUNDS,
    kv_dtype: Literal["f16", "f32"] = "f16",
    progress: Progress | None = None,
) -> Profile:
    """Runs `rounds` of every step at each depth after a first one, and takes medians.

    The engine's own costs learn from the times. The ids are random, so rows choose their experts by chance; rows of
    real text share more experts. Raises RequestError for a depth that exceeds the model's context and for fewer than
    one round, and Cancelled.
    """
    if rounds < 1:
        raise RequestError(f"rounds is {rounds}, wanted 1 or more")
    longest = engine.context_length - MAX_ROWS
    for depth in depths:
        if not 0 <= depth <= longest:
            raise RequestError(
                f"depth is {depth}, wanted 0 to {longest}: the model has {engine.context_length} positions"
            )
    report = progress or (lambda _: None)
    done = []
    for i, depth in enumerate(depths):
        report(i / len(depths))
        done.append(_at(engine, depth, rounds, kv_dtype, lambda part, i=i: report((i + part) / len(depths))))  # type: ignore[misc]
    report(1.0)
    return Profile(tuple(done))


def _at(engine: Engine, depth: int, rounds: int, kv_dtype: Literal["f16", "f32"], report: Progress) -> DepthCosts:
    """Measures one depth. Sessions with and without the drafter take turns as well."""

    def opened(drafter: bool) -> Session:
        return engine.session(context=depth + MAX_ROWS, kv_dtype=kv_dtype, drafter=drafter)

    with opened(False) as plain, opened(True) as drafting:
        for session in (plain, drafting):
            _fill(session, depth)
        times: dict[int | str, list[float]] = {}
        steps = list(_steps(engine, plain, drafting))
        for turn in range(rounds + 1):  # the first round builds the graphs and is not counted
            for name, step in steps:
                seconds = _timed(step)
                if turn:
                    times.setdefault(name, []).append(seconds)
                    _teach(engine, depth, name, seconds)
            report((turn + 1) / (rounds + 1))
    found = {name: 1000 * median(each) for name, each in times.items()}
    verify = tuple(ms for name, ms in found.items() if isinstance(name, int))
    return DepthCosts(depth, verify, found["plain"], found.get("draft"))


def _steps(engine: Engine, plain: Session, drafting: Session) -> Iterator[tuple[int | str, Callable[[], object]]]:
    """Yields the steps that are timed, each under its width, "plain" or "draft". No step changes the state."""
    widths = engine.drafter.block if engine.drafter else PromptLookupDrafter().length
    ids = _ids(engine, widths, seed=2)
    yield "plain", lambda: plain.verify()
    for k in range(widths + 1):
        yield k, lambda k=k: drafting.verify(ids[:k])  # type: ignore[misc]
    if engine.drafter:
        yield "draft", lambda: drafting.draft()


def _teach(engine: Engine, depth: int, name: int | str, seconds: float) -> None:
    """Adds a time to the engine's costs. Their verify includes acceptance, which is short beside it."""
    if isinstance(name, int):
        engine.costs.add_verify(depth, name, seconds)
    elif name == "draft":
        engine.costs.add_draft(depth, DSparkDrafter.name, seconds)


def _fill(session: Session, depth: int) -> None:
    """Fills a session with `depth` tokens and an anchor."""
    ids = _ids(session, depth + 1, seed=1)
    if depth:
        session.prefill(ids[:-1])
    session.anchor = int(ids[-1])


def _ids(of: Engine | Session, count: int, seed: int) -> np.ndarray[Any, np.dtype[np.int32]]:
    return np.random.default_rng(seed).integers(0, of.tokenizer.vocab_size, count, np.int32)


def _timed(step: Callable[[], object]) -> float:
    started = time.perf_counter()
    step()
    return time.perf_counter() - started
