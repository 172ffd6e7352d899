"""Costs of cycles: what is learned from steps, what is made of gaps, and what is kept."""

from __future__ import annotations

import json
from pathlib import Path
from typing import ClassVar

import pytest

from ds4py.errors import FormatError
from ds4py.speculative import Costs
from ds4py.speculative.cost_store import CostStore
from ds4py.speculative.costs import bucket_of

pytestmark = pytest.mark.fast


def learned(points: dict[int, float], depth: int = 0, draft: float | None = None) -> Costs:
    costs = Costs()
    add(costs, points, depth)
    for _ in range(3 if draft else 0):
        costs.add_draft(depth, "dspark", draft or 0)
    return costs


def add(costs: Costs, points: dict[int, float], depth: int) -> None:
    for width, seconds in points.items():
        for _ in range(8):
            costs.add_verify(depth, width, seconds)


def verify(costs: Costs, depth: int = 0, drafter: str | None = None) -> tuple[float, ...]:
    curve = costs.curve(depth, drafter)
    assert curve is not None
    return curve.verify


def test_a_cost_is_the_median_of_steps() -> None:
    costs = Costs()
    for seconds in (0.1, 0.2, 5.0, 0.2, 0.2):
        costs.add_verify(0, 0, seconds)
    assert verify(costs)[0] == 0.2


def test_nothing_is_told_before_enough_is_known() -> None:
    costs = Costs()
    assert costs.curve(0, None) is None
    for _ in range(2):
        costs.add_verify(0, 0, 0.1)
    assert costs.curve(0, None) is None
    costs.add_verify(0, 0, 0.1)
    assert costs.curve(0, None) is not None
    assert costs.curve(0, "dspark") is None  # its drafts are not known
    assert costs.unknown(range(3)) == 2


def test_costs_follow_a_machine_that_slows_down() -> None:
    costs = learned({0: 0.1})
    for _ in range(40):
        costs.add_verify(0, 0, 0.3)
    assert verify(costs)[0] == 0.3


def test_widths_between_are_on_a_line_and_those_beyond_go_on_steeply() -> None:
    curve = verify(learned({0: 1.0, 2: 2.0, 4: 2.2}))
    assert curve[:5] == pytest.approx((1.0, 1.5, 2.0, 2.1, 2.2))
    assert curve[6] == pytest.approx(3.2)
    assert len(curve) == 16


def test_more_rows_are_never_cheaper() -> None:
    assert verify(learned({0: 1.0, 1: 0.9, 2: 1.2}))[:3] == (1.0, 1.0, 1.2)


def test_depths_have_curves_of_their_own() -> None:
    costs = learned({0: 1.0, 1: 1.5})
    add(costs, {0: 2.0, 1: 3.0}, 4096)
    assert verify(costs, 100)[:2] == (1.0, 1.5)
    assert verify(costs, 5000)[:2] == (2.0, 3.0)
    assert [bucket_of(each) for each in (0, 511, 512, 1023, 1024, 4096)] == [0, 0, 1, 1, 2, 4]


def test_a_depth_that_has_only_plain_steps_takes_the_rest_from_another() -> None:
    costs = learned({0: 1.0, 1: 1.5, 2: 1.8}, draft=0.4)
    assert verify(costs, 9000)[:3] == (1.0, 1.5, 1.8)
    add(costs, {0: 1.3}, 9000)
    assert verify(costs, 9000)[:3] == pytest.approx((1.3, 1.8, 2.1))
    curve = costs.curve(9000, "dspark")
    assert curve is not None and curve.draft == 0.4


def test_they_are_kept_and_refined() -> None:
    kept = Costs.from_dict(json.loads(json.dumps(learned({0: 1.0, 1: 1.5}, draft=0.4).as_dict())))
    assert verify(kept, 0, "dspark")[:2] == pytest.approx((1.0, 1.5))
    assert kept.unknown(range(2)) is None
    for _ in range(31):
        kept.add_verify(0, 0, 2.0)
    assert verify(kept)[0] == 2.0


@pytest.mark.parametrize(
    "values",
    [{}, {"verify_ms": []}, {"verify_ms": {"0": {"0": -1}}, "draft_ms": {}}, {"verify_ms": {"x": {}}, "draft_ms": {}}],
)
def test_what_is_not_costs_is_refused(values: dict) -> None:
    with pytest.raises(FormatError, match="not costs"):
        Costs.from_dict(values)


class TestStore:
    IDENTITY: ClassVar = {"model": "a", "threads": 2}

    @pytest.fixture(autouse=True)
    def fresh(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))

    def store(self, **changes: object) -> CostStore:
        return CostStore({**self.IDENTITY, **changes})

    def kept(self) -> CostStore:
        store = self.store()
        store.keep(learned({0: 1.0, 1: 1.5}))
        return store

    def test_the_next_start_has_them(self) -> None:
        self.kept()
        assert verify(self.store().load())[:2] == pytest.approx((1.0, 1.5))

    def test_something_else_does_not(self) -> None:
        self.kept()
        for changes in ({"model": "b"}, {"threads": 1}, {"build": "new"}):
            assert self.store(**changes).load().curve(0, None) is None

    @pytest.mark.parametrize("damage", ["", "{", "[]", '{"identity": 1}', "\x00\xff"])
    def test_a_damaged_file_counts_as_none(self, damage: str) -> None:
        store = self.kept()
        store.path.write_text(damage, encoding="utf-8")
        assert store.load().curve(0, None) is None

    def test_costs_of_another_identity_in_its_file_count_as_none(self) -> None:
        store, other = self.kept(), self.store(model="b")
        other.path.write_bytes(store.path.read_bytes())
        assert other.load().curve(0, None) is None

    def test_nothing_is_left_but_the_file(self) -> None:
        store = self.kept()
        assert list(store.path.parent.iterdir()) == [store.path]

    def test_a_few_steps_are_not_written(self) -> None:
        store = self.store()
        store.keep(Costs())
        assert not store.path.exists()

    def test_a_directory_that_cannot_be_written_is_no_error(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        (tmp_path / "file").write_text("")
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
        assert self.kept().load().curve(0, None) is None
