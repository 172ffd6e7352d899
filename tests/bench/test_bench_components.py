"""The bench of a verify's components: where nodes belong, what is timed, and the tables."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import components
import numpy as np
import parts
import pytest
from components import Column
from must_read import component_of
from parts import PARTS
from paths import GOLDEN

from ds4py import RequestError, _native

TARGET = str(GOLDEN / "tiny-target-f32.gguf")
ROWS = [5, 6, 7, 5]
Capture = pytest.CaptureFixture[str]


def opened(repack: bool = True) -> _native.Session:
    return _native.Session(_native.Model.load(TARGET, repack=repack), context=128)


def node(op: str, leaves: Sequence[str] = (), sources: Sequence[int] = (), seconds: float = 0.0) -> Any:
    return SimpleNamespace(op=op, leaves=list(leaves), sources=list(sources), seconds=seconds, experts=0)


class TestNodeTimes:
    def test_nothing_changes(self) -> None:
        session, other = opened(), opened()
        for each in (session, other):
            each.prefill(list(range(40)))
        before = session.verify(ROWS).copy()
        session.diagnostics.node_times(ROWS[:2])
        assert session.position == 40
        assert np.array_equal(session.verify(ROWS), before) and np.array_equal(other.verify(ROWS), before)

    def test_verified_rows_are_dropped(self) -> None:
        session = opened()
        session.verify(ROWS)
        session.diagnostics.node_times(ROWS)
        with pytest.raises(RequestError, match="0 were verified"):
            session.commit(1)

    def test_all_that_computes_is_timed(self) -> None:
        nodes = opened().diagnostics.node_times(ROWS)
        views = {"VIEW", "RESHAPE", "PERMUTE", "TRANSPOSE", "NONE"}
        assert all((each.seconds > 0) != (each.op in views) for each in nodes)
        assert all(source < i for i, each in enumerate(nodes) for source in each.sources)
        read = {leaf for each in nodes for leaf in each.leaves}
        assert {"output.weight", "blk.5.ffn_down_exps.weight", "blk.0.attn_sinks.weight"} <= read

    @pytest.mark.parametrize(
        ("ids", "words"), [([1] * 17, "17 rows at once"), ([512], "vocabulary"), ([], "no tokens")]
    )
    def test_what_is_refused(self, ids: list[int], words: str) -> None:
        with pytest.raises(RequestError, match=words):
            opened().diagnostics.node_times(ids)


class TestParts:
    def test_by_hand(self) -> None:
        nodes = [
            node("GET_ROWS", ["token_embd.weight", "leaf_0"]),
            node("REPEAT", [], [0]),
            node("RMS_NORM", [], [1]),
            node("MUL_MAT", ["blk.0.hc_attn_fn.weight"], [2]),
            node("DSV4_HC_PRE", [], [1, 3]),
            node("RMS_NORM", [], [4]),
            node("MUL", ["blk.0.attn_norm.weight"], [5]),
            node("MUL_MAT", ["blk.0.attn_q_a.weight"], [6]),
            node("ROPE", ["leaf_3"], [7]),
            node("GET_ROWS", ["leaf_1", "leaf_2"]),
            node("CUSTOM", ["leaf_4", "blk.0.attn_sinks.weight"], [8, 9]),
            node("DSV4_HC_POST", [], [10, 1, 3]),
            node("MUL_MAT", ["blk.0.ffn_gate_inp.weight"], [11]),
            node("MUL_MAT_ID", ["blk.0.ffn_up_exps.weight"], [11, 12]),
            node("GLU", [], [13, 13]),
            node("MUL_MAT", ["blk.0.ffn_up_shexp.weight"], [11]),
            node("GLU", [], [15]),
            node("DSV4_HC_POST", [], [16, 11, 3]),
        ]
        attention, hyper, rest = "attention", "hyper-connections", "MoE, the rest"
        assert parts.parts_of(nodes) == [
            *["other"] * 3, hyper, hyper, *[attention] * 2, "attention products", *[attention] * 3,
            hyper, rest, "experts", rest, "shared expert", rest, hyper,
        ]  # fmt: skip
        assert parts.folded(nodes) == {}

    def test_nodes_that_do_several_things_at_once(self) -> None:
        """Mixing the streams with the norm, and the shared expert with the others; rows are prepared for both."""
        nodes = [
            node("CUSTOM", ["blk.0.hc_ffn_fn.weight", "blk.0.ffn_norm.weight"]),
            node("VIEW", [], [0]),
            node("CUSTOM", [], [1]),
            node("RESHAPE", [], [2]),
            node("CUSTOM", ["blk.0.ffn_gate_inp.weight"], [1]),
            node("CUSTOM", ["blk.0.exp_probs_b.bias"], [4]),
            node("CUSTOM", ["blk.0.ffn_up_exps.weight", "blk.0.ffn_up_shexp.weight"], [3, 5], 2.0),
            node("CUSTOM", ["blk.0.ffn_down_shexp.weight", "blk.0.ffn_down_exps.weight"], [6], 3.0),
            node("CUSTOM", [], [7, 0]),
        ]
        hyper, rest = "hyper-connections", "MoE, the rest"
        assert parts.parts_of(nodes) == [hyper, hyper, rest, rest, rest, rest, "experts", "experts", hyper]
        assert parts.folded(nodes) == {"shared expert": "experts"}
        found = parts.times(nodes)
        assert found["experts"] == 5 and "shared expert" not in found

    def test_times_by_matrices(self) -> None:
        matrices = {"blk.0.up.weight": "8x4 Q8_0", "blk.11.up.weight": "8x4 Q8_0", "blk.0.hc.weight": "8x2 F32"}
        nodes = [
            node("CUSTOM", ["blk.0.up.weight", "blk.0.norm.weight"], [], 1.0),
            node("CUSTOM", ["blk.11.up.weight"], [0], 2.0),
            node("CUSTOM", ["blk.0.hc.weight", "blk.0.up.weight"], [1], 4.0),
            node("VIEW", ["blk.0.hc.weight"]),
            node("ADD", [], [2, 3], 8.0),
        ]
        found = parts.by_matrices(nodes, matrices)
        assert found == {"up.weight 8x4 Q8_0": 3.0, "hc.weight 8x2 F32 + up.weight 8x4 Q8_0": 4.0}

    def test_a_tied_head(self) -> None:
        nodes = [node("GET_ROWS", ["token_embd.weight"]), node("MUL_MAT", ["token_embd.weight"], [0])]
        assert parts.parts_of(nodes) == ["other", "head"]

    @pytest.mark.parametrize("repack", [True, False])
    @pytest.mark.parametrize("position", [0, 100])
    def test_of_a_graph(self, repack: bool, position: int) -> None:
        session = opened(repack)
        if position:
            session.prefill(list(range(position)))
        nodes = session.diagnostics.node_times(ROWS)
        found = parts.parts_of(nodes)
        for each, part in zip(nodes, found, strict=True):
            own = {component_of(leaf) for leaf in each.leaves} - {None, "embedding"}
            assert not own or part in own
        without = parts.folded(nodes)
        assert set(found) | set(without) == set(PARTS) and set(without) <= {"shared expert"}
        assert sum(parts.times(nodes).values()) == pytest.approx(sum(each.seconds for each in nodes))


class TestTables:
    def column(self, rows: int, seconds: float, size: float) -> Column:
        own = {part: 0.0 for part in PARTS if part != "shared expert"}
        times, read = own | {"experts": seconds, "head": seconds}, own | {"experts": size}
        return Column(rows, seconds, times, read, (3.0, 4.0), {"shared expert": "experts"}, {})

    def test_cells(self, capsys: Capture) -> None:
        """At 1 ms for 1 MB, and 3 ms for 2 MB."""
        components.show([self.column(1, 1e-3, 1e6), self.column(6, 3e-3, 2e6)], 35e9)
        blocks = [block.splitlines() for block in capsys.readouterr().out.strip().split("\n\n")]
        assert blocks.pop() == ["shared expert: computed by the nodes of experts, and counted there"]
        assert [block[0] for block in blocks] == [
            "milliseconds, and share",
            "MB to read, and GB/s of 35.0 that the memory gives",
            "time, and bytes, over those of 1 row",
        ]
        lines = [{each[:21].strip(): each[21:].split() for each in block[1:]} for block in blocks]
        assert lines[0]["experts"] == ["1.00", "50%", "3.00", "50%"]
        assert lines[0]["nodes together"] == ["2.00", "6.00"] and lines[0]["verify"] == ["1.00", "3.00"]
        assert lines[1]["experts"] == ["1.00", "1.00", "2.00", "0.67"] and lines[1]["head"] == ["-", "-"]
        assert lines[1]["distinct experts"] == ["3.0", "3.0"] and lines[1]["by chance"] == ["4.0", "4.0"]
        assert lines[2]["experts"] == ["1.00", "1.00", "3.00", "2.00"]
        assert lines[2]["head"] == ["1.00", "-", "3.00", "-"]
        assert lines[2]["verify"] == ["1.00", "1.00", "3.00", "2.00"]

    def test_run(self, tmp_path: Path, capsys: Capture) -> None:
        file = tmp_path / "found.json"
        more = ["-t", "1", "--rounds", "2", "--rows", "1,4,16", "--depth", "70", "--skew", "0.5", "--json", str(file)]
        assert components.main([TARGET, *more]) == 0
        found = json.loads(file.read_text())
        assert [each["rows"] for each in found["rows"]] == [1, 4, 16]
        for each in found["rows"]:
            assert set(each["seconds"]) == set(each["bytes"]) == set(PARTS) - set(each["folded"])
            assert each["together"] == pytest.approx(sum(each["seconds"].values())) and each["whole"] > 0
        assert found["rows"][1]["matrices"]["output.weight 64x512 F32"] > 0
        assert found["rows"][0]["experts"] == [3, 3] and found["rows"][1]["experts"][0] < found["rows"][1]["experts"][1]
        output = capsys.readouterr().out
        assert all(part in output for part in (*PARTS, "machine ", "threads 1", "depth 70"))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nowhere.gguf"], ["nowhere.gguf", "cannot be opened"]),
        ([TARGET, "--depth", "8190"], ["trained for 8192", "8176"]),
        ([TARGET, "--json", "no/such/folder/found.json"], ["no/such/folder"]),
    ],
)
def test_what_is_refused_takes_one_line(arguments: Sequence[str], words: Sequence[str], capsys: Capture) -> None:
    assert components.main(arguments) == 2
    error = capsys.readouterr().err
    assert error.startswith("components.py: error: ") and error.count("\n") == 1
    assert all(word in error for word in words)


@pytest.mark.parametrize("more", [["--rows", "0"], ["--rows", "1,17"], ["--depth", "-1"], ["--skew", "x"]])
def test_wrong_values(more: Sequence[str], capsys: Capture) -> None:
    with pytest.raises(SystemExit) as ended:
        components.main([TARGET, *more])
    assert ended.value.code == 2
    assert more[0] in capsys.readouterr().err.splitlines()[-1]
