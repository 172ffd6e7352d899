"""The bench of speculation: its figures by hand, its tables on the embedded pair, and what it refuses."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import speculation
import steady
import trials
from pair import DEFAULTS, Pair
from paths import GOLDEN
from prompts import CHECKS, KINDS, prompt
from steady import Cell, Config, Step, Text

from ds4py import Sampling, data
from ds4py.generation.generator import Piece
from ds4py.generation.stats import Stats
from ds4py.speculative import Cycle, ScriptedDrafter

GREEDY = Sampling(temperature=0)
PLAIN = Config("plain", "off", False, 15)
TARGET, DRAFTER = str(GOLDEN / "tiny-target-f32.gguf"), str(GOLDEN / "tiny-drafter-f32.gguf")
Capture = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def pair() -> Iterator[Pair]:
    """A random pair, with sessions."""
    with Pair.opened(TARGET, DRAFTER, "cpu", 1) as pair:
        pair.open_sessions([[5] * 8], 32)
        yield pair


def text(steps: Sequence[tuple[int, float]], tokens: Sequence[int] = (), cycles: Sequence[Cycle] = ()) -> Text:
    return Text(tuple(tokens), tuple(Step(*step) for step in steps), tuple(cycles), "length", 1.0)


def cell(*rates: float, tokens: int = 10, config: str = "dspark") -> Cell:
    return Cell("code", 0.0, config, tuple(text([(tokens, tokens / rate)]) for rate in rates))


def run(tmp_path: Path, *arguments: object) -> dict[str, Any]:
    """The JSON of the bench, with 8 tokens a text."""
    file = tmp_path / "found.json"
    assert speculation.main([*map(str, arguments), "-n", "8", "-t", "1", "--json", str(file)]) == 0
    return json.loads(file.read_text())


class TestSteadyDecoding:
    def test_prompt_first_token_and_first_cycle_are_outside(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """By a clock that says how long each step took."""
        clock = iter([0.0, 100.0, 100.0, 150.0, 150.0, 151.0, 151.0, 151.5])
        monkeypatch.setattr(steady.time, "perf_counter", lambda: next(clock))

        class Scripted:
            stats = Stats(prompt_tokens=30, prompt_seconds=2.0)

            def rewind(self, position: int) -> None:
                self.stats.speculation.cycles = [Cycle(3, n, 0, 1, 0) for n in (3, 2, 0)]

            def generate(self, *_: object, **__: object) -> Iterator[Piece]:
                yield from (Piece("", (1,)), Piece("", (2, 3, 4, 5)), Piece("", (6, 7, 8)), Piece("", (), "stop"))

        found = steady.generate(Scripted(), [1], PLAIN, GREEDY, 9)
        assert found.tokens == (1, 2, 3, 4, 5, 6, 7, 8) and found.finish == "stop"
        assert found.steps == (Step(3, 1.0), Step(0, 0.5))
        assert [cycle.accepted for cycle in found.cycles] == [2, 0]
        assert found.rate == 2.0 and found.prompt_rate == 15.0

    def test_of_a_session(self, pair: Pair) -> None:
        plain = pair.generate([5, 6, 7], PLAIN, GREEDY, 12)
        assert [step.tokens for step in plain.steps] == [1] * 10 and len(plain.cycles) == 10
        right = ScriptedDrafter(lambda ids: list(plain.tokens[len(ids) - 3 :][:3]))
        drafted = pair.generate([5, 6, 7], Config("right", right, True, 3), GREEDY, 12)
        assert drafted.tokens == plain.tokens
        assert [step.tokens for step in drafted.steps] == [4, 3]  # after the first token and a cycle of four

    def test_a_text_that_ends_at_once_has_no_rate(self, pair: Pair) -> None:
        found = pair.generate([5, 6, 7], PLAIN, GREEDY, 2)
        assert found.steps == () and found.rate == 0 and len(found.tokens) == 2
        nothing = Cell("code", 0.0, "plain", (found,))
        assert steady.compared(cell(3.0), nothing) == (None, None, None)
        assert steady.averages([nothing]) == (0, 0) and steady.averages([nothing, cell(4.0)]) == (4, 4)

    def test_quarters(self) -> None:
        found = text([(4, 1.0), (2, 0.5), (6, 1.0), (1, 1.0), (3, 2.0)], tokens=range(20))
        assert list(found.quarters()) == [
            ([4, 5, 6, 7], 4.0),
            ([8, 9, 10, 11, 12, 13, 14, 15], pytest.approx(8 / 1.5)),
            ([], 0.0),
            ([16, 17, 18, 19], pytest.approx(4 / 3)),
        ]


class TestFigures:
    def test_medians_and_range_of_the_ratio(self) -> None:
        ours, plain = cell(30.0, 20.0, 40.0), cell(10.0, 20.0, 12.0, config="plain")
        assert (ours.rate, plain.rate) == (30, 12)
        assert steady.compared(ours, plain) == pytest.approx((2.5, 1.0, 10 / 3))
        assert ours.seconds == pytest.approx(10 / 30)
        assert speculation.ratio_cell(ours, plain) == "2.50 (1.00..3.33)"

    def test_of_scripted_cycles(self) -> None:
        cycles = [Cycle(3, 3, 0.004, 0.01, 0.001), Cycle(3, 1, 0.002, 0.03, 0.001), Cycle(0, 0, 0.0, 0.02, 0.001)]
        found = Cell("json", 0.7, "dspark3", (text([(7, 2.0)], [1, 2, 3, 4, 5, 1, 2, 3, 4], cycles),) * 2)
        assert found.speculation.emitted_per_cycle == pytest.approx(7 / 3)
        assert speculation.percents(found.speculation) == "100 50 50"
        assert (found.mean_ms("draft"), found.mean_ms("verify")) == pytest.approx((2.0, 20.0))
        assert found.as_dict(found)["distinct_4grams"] == pytest.approx(5 / 6)

    def test_the_two_averages_may_point_in_different_directions(self) -> None:
        """One prompt at half the speed, the other at twice the speed."""
        plain = [cell(20.0, config="plain"), cell(20.0, config="plain")]
        ours = [cell(10.0), cell(40.0)]
        assert steady.averages(ours) == pytest.approx((16, 25))
        assert steady.averages([cell(10.0, tokens=90), cell(40.0, tokens=10)]) == pytest.approx((100 / 9.25, 13))
        [_, row] = speculation.totals([(plain[0], ours[0]), (plain[1], ours[1])])
        assert (row["by_time_ratio"], row["by_tokens_ratio"]) == pytest.approx((0.8, 1.25))

    def test_totals_by_temperature_and_over_all(self) -> None:
        groups = [[Cell("code", t, "plain", (text([(10, seconds)]),))] for t, seconds in ((0.0, 1.0), (1.0, 4.0))]
        found = [(row["temperature"], row["by_time"]) for row in speculation.totals(groups)]
        assert found == [(0.0, 10.0), (1.0, 2.5), (None, 4.0)]

    def test_repetition(self) -> None:
        assert steady.distinct([1, 2, 3]) is None
        assert steady.distinct(list(range(9))) == 1
        assert steady.distinct([1, 2] * 10) == pytest.approx(2 / 17)
        words = " ".join(map(str, range(12)))
        assert steady.repeated_spans(f"{words} x {words} y {words}") == (1, 3)
        assert steady.repeated_spans("too short") == (0, 0)

    def test_where_texts_differ(self, pair: Pair, capsys: Capture) -> None:
        plain = Cell("code", 0.0, "plain", (text([], [5, 6, 7, 8]),))
        assert steady.difference(plain, plain, pair.lead) is None
        for tokens, at in (([5, 6, 9, 8], 2), ([5, 6, 7], 3)):
            other = Cell("code", 0.0, "lookup", (text([], tokens),))
            [found] = speculation.differing(pair, [4, 4], [plain, other])
            assert (found.config, found.at) == ("lookup", at)
            session = pair.sessions[False]
            session.rewind(0)
            ordered = sorted(session.evaluate([4, 4, 5, 6, 7][: 2 + at])[-1].tolist())
            assert found.lead == pytest.approx(ordered[-1] - ordered[-2], abs=1e-3) and found.lead > 0
        speculation.print_differences([found])
        assert "code, lookup: differs from plain decoding from token 3 on" in capsys.readouterr().out


class TestTable:
    def test_on_the_embedded_pair(self, tmp_path: Path, capsys: Capture) -> None:
        found = run(tmp_path, "--rounds", 1, "--temps", "0,0.7", "--kinds", "prose,echo")
        assert set(found) == {"machine", "build", "files", "settings", "cells", "totals", "differences"}
        assert found["files"]["target"]["bytes"] == data.TARGET.stat().st_size
        assert found["files"]["drafter"]["name"] == data.DRAFTER.name
        cells = {(each["kind"], each["temperature"], each["config"]): each for each in found["cells"]}
        assert set(cells) == set(product(("prose/short", "echo/short"), (0, 0.7), DEFAULTS))
        assert all(each["ratio"] == 1 for each in cells.values() if each["config"] == "plain")
        assert all(each["tokens_per_second"] > 0 for each in cells.values() if each["tokens"])
        assert all(each["speculation"]["drafted"] == 0 for key, each in cells.items() if key[2] in ("plain", "width0"))
        assert max(len(each["speculation"]["widths"]) for key, each in cells.items() if key[2] == "dspark3") == 4
        assert [row["config"] for row in found["totals"]] == list(DEFAULTS) * 3
        assert found["differences"] == []
        output = capsys.readouterr().out
        for expected in ("machine ", "build ", "file ", "drafter ", "threads 1", "context ", "cycles by width"):
            assert expected in output
        assert "all greedy texts are those of plain decoding" in output

    def test_all_kinds_of_prompts_and_temperatures(self) -> None:
        args = speculation.parser().parse_args([])
        assert [label for label, _ in speculation.texts(args)] == [f"{kind}/short" for kind in KINDS]
        args = speculation.parser().parse_args(["--chat", "--kinds", "json", "--prompts", "long"])
        assert list(speculation.texts(args)) == [("json/long", speculation.CONTINUE + prompt("json", "long"))]

    def test_without_a_drafter(self, tmp_path: Path, capsys: Capture) -> None:
        found = run(tmp_path, "-m", TARGET, "--rounds", 2, "--temps", "1", "--kinds", "echo", "--prompts", "both")
        assert {each["config"] for each in found["cells"]} == {"plain", "lookup"}
        assert {each["kind"] for each in found["cells"]} == {"echo/short", "echo/long"}
        assert all(len(each["rounds"]) == 2 for each in found["cells"])
        assert found["differences"] is None
        assert "texts were not compared" in capsys.readouterr().out

    def test_rounds_take_turns(self, pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
        configs, asked = pair.configs("plain,lookup,dspark"), []
        monkeypatch.setattr(Pair, "generate", lambda self, ids, config, *_: asked.append(config.name))
        speculation.measure(pair, "code", [1], configs, GREEDY, 8, 2)
        assert asked == ["plain", "lookup", "dspark", "lookup", "dspark", "plain"]


class TestTrials:
    def test_a_long_text(self, tmp_path: Path, capsys: Capture) -> None:
        [found] = run(tmp_path, "--long", "--temps", 0)["texts"]
        assert (found["config"], found["tokens"], found["finish"]) == ("dspark", 8, "length")
        assert len(found["quarters"]) == 4 and found["most_frequent_span"] <= 1
        assert "end: length" in capsys.readouterr().out

    def test_the_embedded_pair_is_not_asked(self, tmp_path: Path, capsys: Capture) -> None:
        assert run(tmp_path, "--quality") == {"checks": None}
        assert "skipped" in capsys.readouterr().out

    def test_questions(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
        """A random target that has no chat layout; one of its answers is taken to be right."""
        monkeypatch.setattr(Pair, "encode", lambda self, text, chat: self.plain.tokenizer.encode(text))
        right = CHECKS[0]._replace(passes=lambda text: bool(text))
        monkeypatch.setattr(trials, "CHECKS", (right, CHECKS[1]))
        found = run(tmp_path, "--quality", "-m", TARGET, "-md", DRAFTER)["checks"]
        assert [each["name"] for each in found] == [check.name for check in CHECKS[:2]]
        for each, passed in zip(found, (True, False), strict=True):
            assert list(each["answers"]) == ["plain", "dspark"]
            assert [answer["passed"] for answer in each["answers"].values()] == [passed] * 2
            assert each["answers"]["plain"]["answer"] == each["answers"]["dspark"]["answer"]
        last = capsys.readouterr().out.splitlines()[-1]
        assert last.split() == ["right", "1", "of", "2", "1", "of", "2"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["-m", "nowhere.gguf"], ["nowhere.gguf", "cannot be opened"]),
        (["-md", "nowhere.gguf"], ["nowhere.gguf", "cannot be opened"]),
        (["--configs", "plain,fast"], ["'fast'", "wanted plain"]),
        (["--configs", "dspark9"], ["'dspark9'", "proposes 5"]),
        (["--configs", "lookup16"], ["'lookup16'", "wanted plain"]),
        (["-m", TARGET, "--configs", "width0"], ["'width0'", "-md"]),
        (["--long"], ["and 16000 after it", "was trained for", "give -n "]),
        (["-m", TARGET, "--quality"], ["chat layout", "vocabulary lacks"]),
        (["--json", "no/such/folder/found.json"], ["no/such/folder"]),
        (["--temps", "-1"], ["temperature"]),
    ],
)
def test_what_is_refused_takes_one_line(arguments: list[str], words: list[str], capsys: Capture) -> None:
    assert speculation.main(["--kinds", "code", "--rounds", "1", *arguments]) == 2
    error = capsys.readouterr().err
    assert error.startswith("speculation.py: error: ") and error.count("\n") == 1
    assert all(word in error for word in words)


@pytest.mark.parametrize("arguments", [["--kinds", "poem"], ["--rounds", "0"], ["-n", "x"], ["--temps", "warm"]])
def test_wrong_values(arguments: list[str], capsys: Capture) -> None:
    with pytest.raises(SystemExit) as ended:
        speculation.main(arguments)
    assert ended.value.code == 2
    assert arguments[0] in capsys.readouterr().err.splitlines()[-1]
