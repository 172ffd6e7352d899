"""The arithmetic of widths, on every published verify curve (spec: dspark.md, sections 5.3, 5.6 and 6.3)."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ds4py.errors import RequestError
from ds4py.speculative.expected import best_width, break_even, checked, emitted, monotone, survival, worthwhile

pytestmark = pytest.mark.fast

FIRST = (73.7, 96.6, 116.2, 133.8, 150.0, 159.4)
CLIFF = (73.26, 95.68, 127.58, 151.75, 157.29, 173.62)
RESIDENT = (62.16, 82.73, 110.03, 123.74, 135.82, 155.66)
CAPTURED = (58.77, 84.89, 111.05, 123.12, 139.84, 158.24)
CURVES = (FIRST, CLIFF, RESIDENT, CAPTURED)
DRAFT, PLAIN = 23.6, 55.6


def alike(a: float, count: int = 5) -> list[float]:
    return [a] * count


class TestBestWidth:
    @pytest.mark.parametrize(
        ("a", "width", "rate"), [(0.4, 1, 11.65), (0.6, 2, 14.02), (0.7, 3, 16.09), (0.8, 5, 20.16), (0.9, 5, 25.60)]
    )
    def test_published_examples(self, a: float, width: int, rate: float) -> None:
        found, tokens = best_width(alike(a), FIRST, DRAFT)
        assert found == width
        assert 1000 * tokens == pytest.approx(rate, abs=0.006)

    def test_a_cliff_is_jumped_over(self) -> None:
        # The rates dip at 3, so that a search that stops at the first dip would take 2.
        rates = [1000 * e / (DRAFT + v) for e, v in zip(emitted(alike(0.7)), CLIFF, strict=True)]
        assert rates == pytest.approx([10.32, 14.25, 14.49, 14.45, 15.33, 14.91], abs=0.01)
        assert best_width(alike(0.7), CLIFF, DRAFT)[0] == 4
        assert best_width(alike(0.6), CLIFF, DRAFT)[0] == 1

    @pytest.mark.parametrize("curve", CURVES)
    @pytest.mark.parametrize("a", np.linspace(0, 1, 21))
    def test_it_is_the_first_of_the_largest(self, curve: tuple[float, ...], a: float) -> None:
        rates = [e / (DRAFT + v) for e, v in zip(emitted(alike(a)), curve, strict=True)]
        assert best_width(alike(a), curve, DRAFT)[0] == int(np.argmax(rates))

    def test_nothing_is_verified_where_nothing_is_accepted(self) -> None:
        assert best_width(alike(0.0), FIRST, DRAFT) == (0, 1 / (DRAFT + FIRST[0]))

    def test_a_flat_curve_takes_all(self) -> None:
        assert best_width(alike(0.1), (50.0,) * 6, DRAFT)[0] == 5

    def test_ties_take_the_smaller_width(self) -> None:
        assert best_width([1.0, 1.0], (10.0, 20.0, 30.0), 0.0)[0] == 0
        assert best_width([0.0, 1.0], (10.0, 10.0, 10.0), 0.0)[0] == 0

    def test_one_unlikely_proposal_devalues_those_behind_it(self) -> None:
        assert best_width([0.2, 1.0, 1.0, 1.0, 1.0], FIRST, DRAFT)[0] == 5
        assert best_width([0.05, 0.99, 0.99, 0.99, 0.99], FIRST, DRAFT)[0] == 0
        assert survival([0.5, 0.9, 0.1]) == pytest.approx([0.5, 0.45, 0.045])

    def test_widths_end_where_the_curve_or_the_proposals_end(self) -> None:
        assert best_width(alike(0.99, 9), FIRST, DRAFT)[0] == 5
        assert best_width(alike(0.99, 2), FIRST, DRAFT)[0] == 2
        assert best_width([], FIRST, DRAFT)[0] == 0

    def test_a_cheaper_verify_makes_it_wider(self) -> None:
        flatter = [FIRST[0] + (v - FIRST[0]) / 3 for v in FIRST]
        assert best_width(alike(0.6), flatter, DRAFT)[0] > best_width(alike(0.6), FIRST, DRAFT)[0]


class TestBreakEven:
    def test_published(self) -> None:
        never, *others = break_even(FIRST, DRAFT, PLAIN)
        assert never is None  # 2.16 tokens a cycle with one proposal
        assert others == pytest.approx([0.828, 0.773, 0.762, 0.750], abs=0.001)

    @pytest.mark.parametrize(("draft", "verify", "a", "acceptance"), [(23, 147, 0.718, 0.41), (27, 166, 0.774, 0.49)])
    def test_four_a4000(self, draft: float, verify: float, a: float, acceptance: float) -> None:
        found = break_even([55.6, *[verify] * 5], draft, PLAIN)[-1]
        assert found == pytest.approx(a, abs=0.001)
        assert (emitted(alike(a))[-1] - 1) / 5 == pytest.approx(acceptance, abs=0.006)

    def test_eight_percent_were_lost_at_42_percent_acceptance(self) -> None:
        # 39.25 tokens/s plainly, 35.91 with 3.1 tokens a cycle: the cycle took 86.3 ms, so 3.39 were needed.
        cycle, plain = 3.1 / 35.91, 1 / 39.25
        assert cycle / plain == pytest.approx(3.39, abs=0.01)
        assert break_even([plain, *[cycle] * 5], 0.0, plain)[-1] == pytest.approx(0.764, abs=0.002)

    def test_free_proposals_always_pay(self) -> None:
        assert break_even([10.0, 10.0], 0.0, 10.0) == pytest.approx([0.0], abs=1e-9)


class TestWorthwhile:
    RATE = 1 / 60

    def test_goes_on_while_proposals_are_worth_their_rows(self) -> None:
        verify = (60, 72, 84, 96, 108, 120)  # a row is worth 0.2 tokens
        assert worthwhile([0.9, 0.9, 0.9, 0.9, 0.9], alike(0.9), verify, self.RATE, 5) == 5
        assert worthwhile([0.9, 0.5, 0.3, 0.9, 0.9], [0.0] * 5, verify, self.RATE, 5) == 2
        assert worthwhile([0.1, 1.0, 1.0, 1.0, 1.0], [0.0] * 5, verify, self.RATE, 5) == 0

    def test_a_cliff_is_crossed_only_for_what_is_behind_it(self) -> None:
        verify = (60, 110, 112, 114, 116, 118)
        assert worthwhile([0.6, 0.9, 0.9, 0.9, 0.9], alike(0.9), verify, self.RATE, 5) == 5
        assert worthwhile([0.6, 0.9, 0.9, 0.9, 0.9], alike(0.1), verify, self.RATE, 5) == 0

    @given(
        st.lists(st.floats(0, 1), min_size=5, max_size=5),
        st.lists(st.floats(0, 1), min_size=5, max_size=5),
        st.lists(st.floats(0, 1), min_size=5, max_size=5),
        st.lists(st.floats(1, 100), min_size=5, max_size=5),
        st.integers(0, 5),
    )
    def test_what_it_admits_does_not_depend_on_what_comes_after(self, one, other, later, steps, same) -> None:
        # Proposal k changes the confidences behind it: what is decided about k must not see them.
        verify = np.cumsum([50, *steps]).tolist()
        mixed = one[:same] + other[same:]
        a, b = (worthwhile(each, later, verify, self.RATE, 5) for each in (one, mixed))
        assert min(a, same) == min(b, same)


class TestCurves:
    def test_noise_does_not_make_more_rows_cheaper(self) -> None:
        assert monotone([10, 12, 11, 15, 14]) == [10, 12, 12, 15, 15]

    @pytest.mark.parametrize(
        ("verify", "draft", "plain", "said"),
        [
            ((), 1, 1, "found none"),
            ((1, math.nan), 1, 1, r"verify\[1\] is nan"),
            ((1, 0), 1, 1, r"verify\[1\] is 0"),
            ((1, math.inf), 1, 1, r"verify\[1\] is inf"),
            ((1,), -1, 1, "draft is -1"),
            ((1,), math.nan, 1, "draft is nan"),
            ((1,), 1, 0, "plain is 0"),
        ],
    )
    def test_malformed_curves_are_refused(self, verify, draft, plain, said) -> None:
        with pytest.raises(RequestError, match=said):
            checked(verify, draft, plain)
