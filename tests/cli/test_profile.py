"""`ds4py profile`: what it measures, what it concludes, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ds4py import Engine, RequestError
from ds4py.cli import main
from ds4py.profile import DepthCosts, measure

PUBLISHED = DepthCosts(0, (73.7, 96.6, 116.2, 133.8, 150.0, 159.4), 55.6, 23.6)

Capture = pytest.CaptureFixture[str]


class TestOutlook:
    def test_break_even_is_against_plain_decoding(self) -> None:
        assert PUBLISHED.break_even[0] is None
        assert PUBLISHED.break_even[1:] == pytest.approx([0.828, 0.773, 0.762, 0.750], abs=0.001)

    def test_speed_at_a_survival(self) -> None:
        width, rate = PUBLISHED.speed(0.9)
        assert (width, rate) == (5, pytest.approx(25.60, abs=0.01))
        assert rate == pytest.approx(PUBLISHED.speed_at(5, 0.9))
        assert PUBLISHED.speed(0.7) == (0, pytest.approx(1000 / 55.6))  # 16.09 with a width of 3

    def test_without_a_drafter_proposals_are_free(self) -> None:
        depth = DepthCosts(0, (50.0, 55.0, 60.0), 50.0, None)
        assert depth.break_even == pytest.approx([0.1, 0.170], abs=0.001)
        assert depth.speed(0.05)[0] == 0 and depth.speed(0.5)[0] == 2


class TestMeasure:
    def test_every_width_at_every_depth(self, pair: Engine) -> None:
        told: list[float] = []
        found = measure(pair, [0, 100], rounds=3, progress=told.append)
        assert [each.depth for each in found.depths] == [0, 100]
        for each in found.depths:
            assert len(each.verify_ms) == 6 and min(each.verify_ms) > 0
            assert each.plain_ms > 0 and each.draft_ms is not None and each.draft_ms > 0
        assert told == sorted(told) and told[-1] == 1

    def test_the_engines_costs_learn_from_it(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
        with Engine(device="cpu") as engine:
            assert engine.costs.curve(0, "dspark") is None
            measure(engine, rounds=3)
            assert engine.costs.curve(0, "dspark") is not None
            assert engine.costs.unknown(range(6)) is None
        with Engine(device="cpu") as engine:  # and are there at the next start
            assert engine.costs.curve(0, "dspark") is not None

    def test_without_a_drafter_as_far_as_lookups_go(self, tiny: Engine) -> None:
        (depth,) = measure(tiny, rounds=3).depths
        assert len(depth.verify_ms) == 9 and depth.draft_ms is None

    def test_no_rounds(self, tiny: Engine) -> None:
        with pytest.raises(RequestError, match="rounds is 0"):
            measure(tiny, rounds=0)

    def test_a_depth_beyond_the_context(self, tiny: Engine) -> None:
        with pytest.raises(RequestError, match="depth is 99999999, wanted 0 to"):
            measure(tiny, [0, 99999999])


class TestCommand:
    FLAGS = ("profile", "-t", "1", "--device", "cpu", "--rounds", "3")

    def test_json(self, capsys: Capture) -> None:
        assert main([*self.FLAGS, "--depth", "0,64", "--json", "-q"]) == 0
        found = json.loads(capsys.readouterr().out)
        assert found["model"]["embedded"] is True
        assert [each["depth"] for each in found["depths"]] == [0, 64]
        assert all(len(each["verify_ms"]) == 6 for each in found["depths"])
        assert all(each["draft_ms"] > 0 and each["plain_ms"] > 0 for each in found["depths"])

    def test_tables(self, capsys: Capture) -> None:
        assert main([*self.FLAGS, "--depth", "0"]) == 0
        output = capsys.readouterr().out
        for expected in ("depth 0: a plain step", "pays from survival", "best width", "of plain"):
            assert expected in output

    @pytest.mark.parametrize("ending", [".png", ".svg"])
    def test_plot(self, tmp_path: Path, ending: str, capsys: Capture) -> None:
        file = tmp_path / f"picture{ending}"
        assert main([*self.FLAGS, "--depth", "0", "--plot", str(file)]) == 0
        assert file.stat().st_size > 1000
        assert list(tmp_path.iterdir()) == [file]

    @pytest.mark.parametrize(("name", "said"), [("picture.xyz", "ends with one of"), ("no/picture.png", "no folder")])
    def test_a_picture_that_cannot_be_is_refused_before_measuring(
        self, tmp_path: Path, name: str, said: str, capsys: Capture
    ) -> None:
        assert main([*self.FLAGS, "--plot", str(tmp_path / name)]) == 2
        output = capsys.readouterr()
        assert said in output.err and not output.out
        assert not list(tmp_path.iterdir())

    @pytest.mark.parametrize(
        ("flags", "said"),
        [
            (["--depth", "x"], "not a whole number"),
            (["--depth", "99999999"], "depth is 99999999"),
            (["--rounds", "1"], "3 or more"),
            (["-m", "missing.gguf"], "missing.gguf"),
        ],
    )
    def test_wrong_usage(self, flags: list[str], said: str, capsys: Capture) -> None:
        assert main([*self.FLAGS, *flags]) in (1, 2)
        assert said in capsys.readouterr().err
