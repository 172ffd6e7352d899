"""How many threads compute, and that they rest when there is nothing to do."""

from __future__ import annotations

import os
import time

import pytest
from device import open_engine
from paths import GOLDEN

from ds4py import Engine
from ds4py.cli.model import nodes_note
from ds4py.runtime.threads import default_threads


def test_an_idle_engine_rests() -> None:
    with open_engine("tiny-target-f32.gguf", threads=2) as engine, engine.session(context=64) as session:
        session.prefill([1, 2, 3])
        time.sleep(0.2)  # the next graph may come at once: for some milliseconds it is looked for
        before = time.process_time()
        time.sleep(2)
        assert time.process_time() - before < 0.05


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="the system does not hold threads to processors")
def test_the_default_follows_the_affinity() -> None:
    allowed = os.sched_getaffinity(0)
    assert 1 <= default_threads() <= len(allowed)
    os.sched_setaffinity(0, {min(allowed)})
    try:
        assert default_threads() == 1
        with Engine(GOLDEN / "tiny-target-f32.gguf", device="cpu") as engine:
            assert engine.threads == 1
    finally:
        os.sched_setaffinity(0, allowed)


def test_the_default_is_the_engines() -> None:
    with Engine(GOLDEN / "tiny-target-f32.gguf", device="cpu") as engine:
        assert engine.threads == default_threads()


def test_more_threads_than_processors_are_as_asked_for() -> None:
    with open_engine("tiny-target-f32.gguf", threads=5) as engine:
        assert engine.threads == 5


def test_nodes_are_spoken_of_where_there_are_several() -> None:
    assert nodes_note(1, False) == ""
    assert nodes_note(2, True) == ", 2 NUMA nodes (weights on all of them in turn)"
    assert nodes_note(2, False) == ", 2 NUMA nodes (weights wherever the system put them)"


def test_one_node_is_left_as_it_is() -> None:
    with open_engine("tiny-target-f32.gguf") as engine:
        assert engine.nodes >= 1
        assert not (engine.nodes == 1 and engine.spread_over_nodes)
