"""Width policies, cycle by cycle."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from ds4py.errors import RequestError
from ds4py.speculative import Auto, Breaker, Confidence, Cycle, Ewma, Fixed, Offer, Staged, Width, as_width

pytestmark = pytest.mark.fast

UNKNOWN = Offer(expected=[0.5] * 5, curve=None)
CONFIDENT = Offer(expected=[0.5] * 5, curve=None, confident=True)


def cycle(width: int, accepted: int) -> Cycle:
    return Cycle(width, accepted, 0.1 if width else 0.0, 0.1, 0.0)


def widths(policy: Width, accepted: Sequence[int], most: int = 5) -> list[int]:
    """The widths that a request chooses, with so many accepted each time (fewer where it is not so wide)."""
    policy, found = policy.start(), []
    for count in accepted:
        found.append(min(policy.choose(UNKNOWN), most))
        policy.observe(cycle(found[-1], min(count, found[-1])))
    return found


class TestNames:
    def test_each_makes_its_policy(self) -> None:
        for name, policy in (("auto", Auto), ("confidence", Confidence), ("ewma", Ewma), ("staged", Staged)):
            assert type(as_width(name)) is policy
        assert as_width(3) == Fixed(3)
        mine = Staged(3)
        assert as_width(mine) is mine

    @pytest.mark.parametrize("wrong", ["fast", -1, 16, 2.5, None])
    def test_others_are_refused(self, wrong: object) -> None:
        with pytest.raises(RequestError, match="width is"):
            as_width(wrong)  # type: ignore[arg-type]


class TestEwma:
    def test_it_follows_what_is_accepted(self) -> None:
        # w = 1.5, then 0.7 w + 0.3 accepted: 1.65, 1.755, 1.83, 1.88, 1.916 (near 2), rounded down, and one
        assert widths(Ewma(), [2] * 7) == [2, 2, 2, 2, 2, 3, 3]
        assert widths(Ewma(), [5] * 30)[-1] == 5
        assert widths(Ewma(), [0, 0, 0]) == [2, 2, 1]

    def test_plain_cycles_say_nothing(self) -> None:
        policy = Ewma()
        for _ in range(9):
            policy.observe(cycle(0, 0))
        assert policy.choose(UNKNOWN) == 2


class TestStaged:
    def test_two_then_three_then_all(self) -> None:
        assert widths(Staged(), [9, 9, 9, 9, 1, 9, 9]) == [2, 3, 5, 5, 5, 2, 3]

    def test_any_partial_cycle_starts_again(self) -> None:
        assert widths(Staged(), [9, 2, 9, 9, 9]) == [2, 3, 2, 3, 5]

    def test_a_ceiling(self) -> None:
        assert widths(Staged(3), [9, 9, 9, 9]) == [2, 3, 3, 3]
        with pytest.raises(RequestError, match="ceiling is 1"):
            Staged(1)


class TestConfidence:
    @pytest.mark.parametrize(
        ("confidence", "admitted"),
        [
            ((0.1, 0.9, 0.9, 0.9, 0.9), 1),  # the first always
            ((0.8, 0.5, 0.74, 0.9, 0.9), 2),  # 0.40 is enough for the second, 0.296 not for the third
            ((0.8, 0.49, 0.99, 0.99, 0.99), 1),
            ((0.9, 0.9, 0.9, 0.9, 0.9), 5),
            ((0.7, 0.9, 0.6, 0.6, 0.9), 3),
        ],
    )
    def test_thresholds_are_nested_and_cumulative(self, confidence: tuple[float, ...], admitted: int) -> None:
        policy = Confidence().start()
        assert policy.choose(CONFIDENT) == 5
        assert policy.admit(CONFIDENT, confidence) == admitted

    def test_without_confidences_it_is_the_average(self) -> None:
        accepted = [5, 0, 3, 5, 5, 5, 0]
        assert widths(Confidence(), accepted) == widths(Ewma(), accepted)

    def test_thresholds_out_of_range(self) -> None:
        with pytest.raises(RequestError, match="thresholds are"):
            Confidence([1.2])


class TestBreaker:
    def policy(self) -> Breaker:
        return Breaker(Fixed(4), acceptance=0.60, proposals=32, steps=64)

    def test_a_poor_run_turns_it_off_for_a_while(self) -> None:
        assert widths(self.policy(), [2] * 80) == [4] * 8 + [0] * 64 + [4] * 8

    def test_it_tries_again_and_opens_again(self) -> None:
        found = widths(self.policy(), [2] * 160)
        assert found[72:80] == [4] * 8 and set(found[80:144]) == {0}

    def test_a_good_run_never_trips_it(self) -> None:
        assert widths(self.policy(), [3] * 200) == [4] * 200

    def test_each_window_counts_alone(self) -> None:
        assert widths(self.policy(), [4] * 8 + [2] * 8 + [4]) == [4] * 16 + [0]

    def test_a_new_request_begins_closed(self) -> None:
        policy = self.policy().start()
        for _ in range(8):
            policy.observe(cycle(4, 0))
        assert policy.choose(UNKNOWN) == 0
        assert policy.start().choose(UNKNOWN) == 4

    @pytest.mark.parametrize("wrong", [(1.2, 32, 64), (0.6, 0, 64), (0.6, 32, 0)])
    def test_arguments_out_of_range(self, wrong: tuple[float, int, int]) -> None:
        with pytest.raises(RequestError, match="breaker is"):
            Breaker(Fixed(4), *wrong)

    def test_it_wraps_any_policy(self) -> None:
        policy = Breaker(Confidence(), 0.6, 4, 2).start()
        assert policy.choose(CONFIDENT) == 5
        assert policy.admit(CONFIDENT, (0.5, 0.5, 0.9)) == 1


@pytest.mark.parametrize("policy", [Ewma(), Staged(), Auto(), Confidence()])
def test_no_request_inherits_another_ones_state(policy: Width) -> None:
    first = widths(policy, [5, 5, 5, 0, 5, 5])
    for _ in range(5):
        assert widths(policy, [5, 5, 5, 0, 5, 5]) == first
