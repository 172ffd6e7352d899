"""The bench against llama.cpp: bytes counted by hand, figures of a table, whose turn it is, and what is refused."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import bandwidth
import numpy as np
import peers
import peers_table
import pytest
from child import Worker, WorkerDied
from gguf import GGUFReader
from llama import installed
from must_read import Forward, Target, chance, component_of, measured_experts
from paths import GOLDEN
from peers_table import Table, Work
from rows import random_ids, verify_rows

from ds4py import RequestError, _native

TARGET = str(GOLDEN / "tiny-target-f32.gguf")
SMALL = ["-t", "1", "--rounds", "1", "--rows", "3", "--depth", "40", "--prompts", "20,50"]
ONE, TWO, PROMPT = Work("verify", 1), Work("verify", 2), Work("prefill", 50)
EXPERT = 64 * 32 * 4  # bytes of one matrix of one expert, F32
Capture = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def target() -> Target:
    return Target(_native.GgufFile.open(TARGET))


class TestBytes:
    """The target has 6 layers of ratios 0 0 4 128 4 128, 16 experts of which 3 are used, and F32 weights."""

    def test_of_products(self, target: Target) -> None:
        found = target.by_component(Forward(1, 0))
        queries, keys, output = 64 * 32 + 32 * 4 * 256, 64 * 256, 512 * 32 + 32 * 64
        assert found["attention products"] == 6 * (queries + keys + output) * 4
        assert found["shared expert"] == 6 * 3 * EXPERT
        assert found["head"] == (64 * 512 + 64) * 4
        assert found["hyper-connections"] == (6 * 2 * (256 * 24 + 24 + 3) + 256 * 4 + 4 + 1) * 4
        assert sum(found.values()) == target.total(Forward(1, 0))

    def test_of_experts(self, target: Target) -> None:
        assert target.by_component(Forward(1, 0))["experts"] == 6 * 3 * 3 * EXPERT
        expected = 16 * (1 - (13 / 16) ** 4)
        assert target.by_component(Forward(4, 0))["experts"] == pytest.approx(6 * 3 * expected * EXPERT)
        known = {"blk.0.ffn_up_exps.weight": 5}
        ours = target.by_component(Forward(4, 0, known))["experts"]
        assert ours == pytest.approx((5 + (6 * 3 - 1) * expected) * EXPERT)

    @pytest.mark.parametrize(
        ("position", "window", "index", "compressed"),
        [
            (0, 0, 0, 0),
            (20, 20, 0, 2 * 5),
            (100, 32, 2 * 25, 2 * 8),  # more than 8 rows of ratio 4: the indexer chooses
            (300, 32, 2 * 75, 2 * 8 + 2 * 2),
        ],
    )
    def test_of_keys(self, target: Target, position: int, window: int, index: int, compressed: int) -> None:
        assert target.keys(Forward(1, position)) == 2 * (256 * (6 * window + compressed) + 128 * index)

    def test_the_indexers_queries_are_read_where_it_chooses(self, target: Target) -> None:
        below, above = (target.by_component(Forward(1, at))["compressor, indexer"] for at in (34, 35))
        assert above - below == 2 * (32 * 8 * 128 + 64 * 8) * 4

    def test_lookups_are_not_counted_but_a_tied_head_is(self, target: Target) -> None:
        assert not {"token_embd.weight", "blk.0.ffn_gate_tid2eid.weight"} & {
            n for n, _ in target.by_tensor(Forward(1, 0))
        }
        tied = Target(_native.GgufFile.open(TARGET))
        del tied.sizes["output.weight"]
        assert tied.total(Forward(1, 0)) == target.total(Forward(1, 0))

    def test_every_tensor_has_a_component(self, target: Target) -> None:
        assert all(component_of(name) for name in target.sizes)
        assert component_of("output_hc_fn.weight") == "hyper-connections"
        assert component_of("blk.3.attn_output_a.weight") == "attention products"
        assert component_of("leaf_7") is None

    def test_chance(self) -> None:
        assert chance(16, 3, 1) == 3 and chance(16, 3, 2) == pytest.approx(3 + 3 * 13 / 16)


class TestExperts:
    @pytest.mark.parametrize("repack", [True, False])
    def test_counted_as_the_token_map_says(self, repack: bool) -> None:
        """The first three layers route by the token."""
        session = _native.Session(_native.Model.load(TARGET, repack=repack), context=64)
        ids = random_ids(512, 7, seed=3)
        found = measured_experts(session.diagnostics.node_times(ids))
        assert len(found) == 6 * 3
        maps = {t.name: np.asarray(t.data).reshape(512, 3) for t in GGUFReader(TARGET).tensors if "tid2eid" in t.name}
        for layer in range(3):
            union = set(maps[f"blk.{layer}.ffn_gate_tid2eid.weight"][ids].ravel().tolist())
            assert (
                found[f"blk.{layer}.ffn_down_exps.weight"] == found[f"blk.{layer}.ffn_gate_exps.weight"] == len(union)
            )

    def test_rows_that_repeat_share_them(self) -> None:
        session = _native.Session(_native.Model.load(TARGET), context=64)
        random, repeated = (
            sum(measured_experts(session.diagnostics.node_times(verify_rows(512, 6, skew, seed=1))).values())
            for skew in (0, 1)
        )
        assert repeated < 0.6 * random

    def test_rows_of_a_skew(self) -> None:
        ids = verify_rows(10**6, 16, 0.5, seed=1)
        assert verify_rows(10**6, 6, 0.5, seed=1) == ids[:6]
        assert [a == b for a, b in pairwise(ids)][:4] == [False, True, False, True]
        assert (
            len(set(verify_rows(10**6, 16, 0.0, seed=1))) == 16 and len(set(verify_rows(10**6, 16, 1.0, seed=1))) == 1
        )


class TestTable:
    @pytest.fixture
    def table(self, target: Target) -> Table:
        """llama.cpp needs 30 and 60 ms for one and two rows, we 20 and 25, and the memory gives 1 GB/s."""
        deep = [Work("verify", 1, 40), Work("verify", 2, 40)]
        works = [ONE, TWO, *deep, PROMPT]
        llama = dict(zip(works, ([0.02, 0.03, 0.09], [0.06], [0.04], [0.08], [0.5]), strict=True))
        ours = dict(zip(works, ([0.02], [0.025], [0.025], [0.05], [0.1]), strict=True))
        return Table(target, {"llama": llama, "ours": ours}, {ONE: {"blk.0.ffn_up_exps.weight": 3}}, [3e9, 1e9, 1e8])

    def test_lines(self, table: Table, target: Target) -> None:
        found = list(peers_table.lines(table))
        assert "bandwidth 1.0 GB/s" in found[0]
        assert found[2:4] == ["| work | llama.cpp | ds4py | ratio | bytes limit |", "|---|---|---|---|---|"]
        limit = target.total(Forward(1, 0)) / 1e6
        assert found[4] == f"| verify 1 row at 0 | 30.00 ms | 20.00 ms | 1.50 | {limit:.2f} ms |"
        assert found[8].startswith("| prefill 50 | 500.00 ms | 100.00 ms | 5.00 | ")
        text = "\n".join(found)
        grown = target.total(Forward(2, 0)) / target.total(Forward(1, 0))
        assert f"V(1)/V(0) at 0: llama.cpp 2.00, ds4py 1.25, bytes {grown:.2f}" in text
        assert f"one row at 0: ds4py takes {20 / limit:.2f} times its bytes limit" in text
        assert "decode at 40: llama.cpp 75 %, ds4py 80 %, bytes " in text
        assert "prefill 50: llama.cpp 100.0, ds4py 500.0 tokens/s" in text
        assert "distinct experts a layer at 0, of 16: 3.0 5.4, by chance: not measured" in text

    def test_without_llama(self, table: Table) -> None:
        alone = Table(table.target, {"ours": table.seconds["ours"]}, {}, [1e9])
        found = list(peers_table.lines(alone))
        assert found[4].startswith("| verify 1 row at 0 | - | 20.00 ms | - | ")
        assert any(each.startswith("V(1)/V(0) at 0: ds4py 1.25, bytes ") for each in found)
        assert alone.as_dict()["works"][0]["llama.cpp"] is None and alone.as_dict()["works"][0]["ratio"] is None

    def test_plain_values(self, table: Table, target: Target) -> None:
        found = json.loads(json.dumps(table.as_dict()))
        one = found["works"][0]
        assert (one["kind"], one["rows"], one["depth"], one["ratio"]) == ("verify", 1, 0, 1.5)
        assert one["bytes"] == target.total(Forward(1, 0)) and one["limit"] == pytest.approx(one["bytes"] / 1e9)
        assert one["rounds"]["llama.cpp"] == [0.02, 0.03, 0.09]
        assert [each["experts_measured"] for each in found["works"]] == [True, False, False, False, False]

    def test_measured_experts_are_named(self, table: Table) -> None:
        experts = {work: {"blk.0.ffn_up_exps.weight": 4} for work in table.works if work.kind == "verify"}
        found = peers_table.shared_experts(Table(table.target, table.seconds, experts, [1e9]))
        assert next(iter(found)) == "distinct experts a layer at 0, of 16: 4.0 4.0, by chance 3.0 5.4"


class Recorded:
    """A worker that notes what it is asked."""

    vocab = 512

    def __init__(self, name: str, asked: list[tuple[str, str]]) -> None:
        self.name, self.asked = name, asked

    def ask(self, request: dict[str, Any]) -> dict[str, Any]:
        self.asked.append((self.name, next(iter(request))))
        return {"seconds": 1.0, "experts": {}}


def arguments(*more: str) -> argparse.Namespace:
    return peers.parser().parse_args([TARGET, *SMALL, *more])


class TestTurns:
    def test_who_begins_changes(self, target: Target) -> None:
        asked: list[tuple[str, str]] = []
        workers: Any = {name: Recorded(name, asked) for name in ("ours", "llama")}
        table = peers.measure(target, workers, arguments("--rounds", "2"))
        works = list(peers.works(arguments()))
        assert [name for name, _ in asked[: 4 * len(works)]] == ["llama", "ours"] * len(works) + [
            "ours",
            "llama",
        ] * len(works)
        assert {name for name, kind in asked[4 * len(works) :]} == {"ours"}
        assert all(len(rounds) == 2 for found in table.seconds.values() for rounds in found.values())
        assert len(table.bandwidths) == 2

    def test_both_get_the_same_ids(self) -> None:
        assert peers.request(Work("verify", 3, 40), 512, 0.0) == {"verify": verify_rows(512, 3, 0, seed=1), "depth": 40}
        assert len(peers.ids_of(PROMPT, 512, 0.5)) == 50

    def test_llama_is_started_again_without_extra_buffers(self, monkeypatch: pytest.MonkeyPatch) -> None:
        tried: list[tuple[str, ...]] = []

        def started(python: str, kind: str, path: str, args: argparse.Namespace, *flags: str) -> str:
            tried.append((python, kind, *flags))
            if not flags:
                raise WorkerDied("status -6")
            return "worker"

        monkeypatch.setattr(peers, "started", started)
        found: Any = peers.started_llama(TARGET, arguments("--llama-python", "other"))
        assert found == "worker"
        assert tried == [("other", "llama"), ("other", "llama", "--no-extra-buffers")]

    def test_a_worker_that_dies(self) -> None:
        with pytest.raises(WorkerDied, match="status 3"):
            Worker([sys.executable, "-c", "raise SystemExit(3)"])
        worker = Worker([sys.executable, "-c", "print('{\"vocab\": 5}', flush=True); input()"])
        assert worker.vocab == 5
        with pytest.raises(WorkerDied, match="status 0"):
            worker.ask({})


def test_bandwidth_is_bytes_by_time(monkeypatch: pytest.MonkeyPatch) -> None:
    memory = bandwidth.Memory(2, part=1 << 16)
    clock = iter([1.0, 1.5])
    monkeypatch.setattr(bandwidth.time, "perf_counter", lambda: next(clock))
    assert memory.bandwidth() == 2 * (1 << 16) / 0.5
    memory.parts[1][-1] = 0  # it is read to the end
    with pytest.raises(AssertionError):
        memory.read(memory.parts[1])


def run(tmp_path: Path, *more: str) -> dict[str, Any]:
    file = tmp_path / "found.json"
    assert peers.main([TARGET, *SMALL, *more, "--json", str(file)]) == 0
    found: dict[str, Any] = json.loads(file.read_text())
    return found


class TestRun:
    def test_without_llama(self, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(peers, "find_llama", lambda python: None)
        found = run(tmp_path, str(GOLDEN / "hard-target-f32.gguf"), "--skew", "1")
        assert [each["file"]["name"] for each in found["files"]] == ["tiny-target-f32.gguf", "hard-target-f32.gguf"]
        for file in found["files"]:
            works = file["works"]
            assert [(each["kind"], each["rows"], each["depth"]) for each in works] == list(
                map(tuple, peers.works(arguments()))
            )
            assert all(each["ds4py"] > 0 and each["llama.cpp"] is None for each in works)
            assert [each["experts_measured"] for each in works] == [True] * 6 + [False] * 2
            assert works[2]["experts"] < 0.8 * chance(16, 3, 3)
        output = capsys.readouterr().out
        for expected in ("machine ", "build ", "file ", "threads 1", "context 56", "peer     none", "bandwidth "):
            assert expected in output

    @installed
    def test_beside_llama(self, tmp_path: Path, capsys: Capture) -> None:
        [found] = run(tmp_path, "--llama-python", sys.executable)["files"]
        assert "llama-cpp-python" in found["peer"] and "CPU" in found["peer"]
        assert all(each["llama.cpp"] > 0 and each["ratio"] > 0 for each in found["works"])
        assert "peer     llama-cpp-python" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (["nowhere.gguf"], ["nowhere.gguf", "cannot be opened"]),
        (["--depth", "9000"], [TARGET, "trained for 8192", "9016", "--depth"]),
        (["--llama-python", "no/such/python"], ["no/such/python", "interpreter"]),
        (["--json", "no/such/folder/found.json"], ["no/such/folder"]),
    ],
)
def test_what_is_refused_takes_one_line(more: Sequence[str], words: Sequence[str], capsys: Capture) -> None:
    assert peers.main([TARGET, *SMALL, *more]) == 2
    error = capsys.readouterr().err
    assert error.startswith("peers.py: error: ") and error.count("\n") == 1
    assert all(word in error for word in words)


def test_an_interpreter_without_llama(tmp_path: Path) -> None:
    """One that was asked for has to have it."""
    bare = tmp_path / "python"
    bare.write_text("#!/bin/sh\necho \"ModuleNotFoundError: No module named 'llama_cpp'\" >&2\nexit 1\n")
    bare.chmod(0o755)
    with pytest.raises(RequestError, match=r"No module named 'llama_cpp'; there, pip install llama-cpp-python==0\.3"):
        peers.find_llama(str(bare))


@pytest.mark.parametrize(
    "more", [["--rows", "17"], ["--skew", "1.5"], ["--prompts", "0"], ["-t", "0"], ["--depth", "x"]]
)
def test_wrong_values(more: Sequence[str], capsys: Capture) -> None:
    with pytest.raises(SystemExit) as ended:
        peers.main([TARGET, *more])
    assert ended.value.code == 2
    assert more[0] in capsys.readouterr().err.splitlines()[-1]
