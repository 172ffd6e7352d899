"""Layers over several devices, experts on the CPU: numbers are those of one device, and graphs stay in one piece."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

import numpy as np
import pytest
from paths import GOLDEN
from rpc_server import rpc_server

from ds4py import Engine, Session, _native
from ds4py.errors import RequestError

BOUND = 2e-4  # of the generic operations, test_golden.py
LAYERS = 6
TOKENS = 300
EMBEDDING_NODES = 2  # of a draft: they lie with the first layer
THREE = "{a} (2 layers), CPU (1 layer), {b} (3 layers), routed experts of 2 layers on the CPU"


@pytest.fixture(scope="module")
def second() -> Iterator[str]:
    """Another remote device."""
    with rpc_server() as device:
        yield device


def open_pair(device: str, split: tuple[int, ...] = (), cpu_moe: int | Literal["all"] = 0) -> Engine:
    target, drafter = GOLDEN / "tiny-target-f32.gguf", GOLDEN / "tiny-drafter-f32.gguf"
    return Engine(target, drafter=drafter, device=device, split=split, cpu_moe=cpu_moe, threads=1)


def check_golden(engine: Engine) -> None:
    """Logits in chunks wide and narrow, and a saved state in between."""
    file = np.load(GOLDEN / "target-golden.npz")
    tokens = file["tokens"][:TOKENS]
    with engine.session(context=512, kv_dtype="f32") as session:
        logits = np.concatenate([session.evaluate(tokens[:290]), session.evaluate(tokens[290:])])
    known = file["positions"] < TOKENS
    assert np.abs(logits[file["positions"][known]] - file["logits"][known]).max() <= BOUND
    np.testing.assert_array_equal(logits.argmax(1), file["argmax"][:TOKENS])


@pytest.mark.parametrize(
    ("devices", "split", "cpu_moe", "placed"),
    [
        ("{a},cpu", (4, 2), 0, "{a} (4 layers), CPU (2 layers)"),
        ("cpu,{a}", (1, 5), 0, "CPU (1 layer), {a} (5 layers)"),
        ("{a},{b}", (), 0, "{a} (3 layers), {b} (3 layers)"),
        ("{a},cpu,{b}", (2, 1, 3), 2, THREE),
        ("{a}", (), 4, "{a}, routed experts of 4 layers on the CPU"),
        ("{a}", (), "all", "{a}, routed experts of 6 layers on the CPU"),
        ("cpu", (), "all", "CPU"),
    ],
)  # fmt: skip
def test_golden_logits(
    remote: str, second: str, devices: str, split: tuple[int, ...], cpu_moe: int | Literal["all"], placed: str
) -> None:
    names = {"a": remote, "b": second}
    with open_pair(devices.format(**names), split, cpu_moe) as engine:
        assert engine.device_map == placed.format(**names)
        check_golden(engine)


def test_experts_on_the_cpu_without_kernels_of_ours(remote: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DS4_OPS", "generic")
    with open_pair(remote, cpu_moe=3) as engine:
        check_golden(engine)


def cycles(session: Session, count: int) -> None:
    """Cycles of every draft length in turn, each of which commits its anchor."""
    for i in range(count):
        draft = session.draft()
        session.verify(draft.tokens[: i % 6])
        session.commit(0, int(draft.tokens[0]))


def graphs(session: Session) -> list[_native.GraphStatistics]:
    return session._live.diagnostics.graphs()


@pytest.mark.parametrize("device", ["cpu", "remote"])
def test_steady_graphs_are_whole_and_stay(remote: str, device: str) -> None:
    """Decode, verify and draft of every draft length: one split, built once, at the same addresses."""
    with open_pair(remote if device == "remote" else device) as engine, engine.session(context=512) as session:
        session.prefill(np.load(GOLDEN / "target-golden.npz")["tokens"][:48])
        session.anchor = 1
        cycles(session, 24)
        first = graphs(session)
        cycles(session, 24)
        second = graphs(session)
    assert {graph.rows for graph in first if graph.kind == "forward"} >= set(range(1, 7))
    for graph in first:
        assert (graph.splits, graph.cpu_ops) == (1, {})
        assert graph.devices == {remote if device == "remote" else "CPU": graph.nodes}
    assert {graph.addresses for graph in first} == {graph.addresses for graph in second}


@pytest.mark.parametrize(
    ("devices", "split", "cpu_moe", "drafts_on"),
    [("{a},cpu", (4, 2), 0, "CPU"), ("cpu,{a}", (2, 4), 0, "{a}"), ("{a}", (), "all", "{a}")],
)
def test_a_draft_is_the_heads_devices_alone(
    remote: str, pair: Engine, devices: str, split: tuple[int, ...], cpu_moe: int | Literal["all"], drafts_on: str
) -> None:
    """Stages with their experts, and the sequential heads, lie in one place; what they tap comes from all."""
    drafts = []
    with open_pair(devices.format(a=remote), split, cpu_moe) as engine:
        for each in (engine, pair):
            with each.session(context=512, kv_dtype="f32") as session:
                session.prefill(np.load(GOLDEN / "target-golden.npz")["tokens"][:48])
                session.anchor = 1
                drafts.append(session.draft())
                drawn = next(graph for graph in graphs(session) if graph.kind == "draft")
            if each is engine:
                assert drawn.nodes - drawn.devices[drafts_on.format(a=remote)] <= EMBEDDING_NODES
    np.testing.assert_array_equal(drafts[0].tokens, drafts[1].tokens)
    np.testing.assert_allclose(drafts[0].confidence, drafts[1].confidence, atol=BOUND)


def test_what_a_device_leaves_to_the_cpu_is_told(remote: str) -> None:
    with open_pair(remote, cpu_moe=2) as engine, engine.session(context=512) as session:
        session.prefill([1, 2, 3, 4])
        (forward,) = graphs(session)
    assert forward.splits == 5  # before, between and after two layers' experts
    assert set(forward.cpu_ops) == {"CUSTOM"}


def test_a_split_saves_and_restores(remote: str, pair: Engine, tmp_path: Any) -> None:
    """State on several devices is one file, which an engine that places it otherwise continues, too."""
    tokens = np.load(GOLDEN / "target-golden.npz")["tokens"]
    with open_pair(f"{remote},cpu", (3, 3)) as engine:
        with engine.session(context=512, kv_dtype="f32") as session:
            session.prefill(tokens[:200])
            session.save(tmp_path / "state")
            session.prefill(tokens[200:290])
            session.rewind(203)
            wanted = session.evaluate(tokens[203:220])
        for other in (engine, pair):
            with other.load_session(tmp_path / "state") as session:
                session.prefill(tokens[200:203])
                assert np.abs(session.evaluate(tokens[203:220]) - wanted).max() <= BOUND


@pytest.mark.parametrize(
    ("device", "split", "cpu_moe", "said"),
    [
        ("cpu", (3, 3), 0, "the split 3,3 has 2 parts for 1 device"),
        ("cpu,{a}", (3, 2), 0, "the split 3,2 has 5 layers, wanted parts of at least 1 that sum to the model's 6"),
        ("cpu,{a}", (6, 0), 0, "parts of at least 1"),
        ("{a},{a}", (), 0, "is named twice"),
        ("cpu,gpu", (), 0, "device 'gpu' is not here; this build offers"),
        ("{a}", (), 7, "experts of 7 layers are to stay on the CPU, wanted 0 to 6"),
        ("{a}", (), -2, "experts of -2 layers"),
    ],
)
def test_what_does_not_fit(remote: str, device: str, split: tuple[int, ...], cpu_moe: int, said: str) -> None:
    with pytest.raises(RequestError, match=said):
        open_pair(device.format(a=remote), split, cpu_moe)
