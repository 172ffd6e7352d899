"""Draft length policies, cycle by cycle."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from ds4py.errors import RequestError
from ds4py.speculative import (
    Auto,
    Breaker,
    Confidence,
    Cycle,
    DraftEstimate,
    DraftLengthPolicy,
    Ewma,
    Fixed,
    Staged,
    as_draft_length,
)

pytestmark = pytest.mark.fast

UNKNOWN = DraftEstimate(survival=[0.5] * 5, curve=None)
CONFIDENT = DraftEstimate(survival=[0.5] * 5, curve=None, has_confidence=True)


def cycle(draft_length: int, accepted: int) -> Cycle:
    return Cycle(draft_length, accepted, 0.1 if draft_length else 0.0, 0.1, 0.0)


def draft_lengths(policy: DraftLengthPolicy, accepted: Sequence[int], most: int = 5) -> list[int]:
    """The draft lengths that a request chooses, with so many accepted each time (fewer where it is not so wide)."""
    policy, found = policy.start(), []
    for count in accepted:
        found.append(min(policy.choose(UNKNOWN), most))
        policy.observe(cycle(found[-1], min(count, found[-1])))
    return found


class TestNames:
    def test_each_makes_its_policy(self) -> None:
        for name, policy in (("auto", Auto), ("confidence", Confidence), ("ewma", Ewma), ("staged", Staged)):
            assert type(as_draft_length(name)) is policy
        assert as_draft_length(3) == Fixed(3)
        mine = Staged(3)
        assert as_draft_length(mine) is mine

    @pytest.mark.parametrize("wrong", ["fast", -1, 16, 2.5, None])
    def test_others_are_refused(self, wrong: object) -> None:
        with pytest.raises(RequestError, match="draft_length is"):
            as_draft_length(wrong)  # type: ignore[arg-type]


class TestEwma:
    def test_it_follows_what_is_accepted(self) -> None:
        # w = 1.5, then 0.7 w + 0.3 accepted: 1.65, 1.755, 1.83, 1.88, 1.916 (near 2), rounded down, and one
        assert draft_lengths(Ewma(), [2] * 7) == [2, 2, 2, 2, 2, 3, 3]
        assert draft_lengths(Ewma(), [5] * 30)[-1] == 5
        assert draft_lengths(Ewma(), [0, 0, 0]) == [2, 2, 1]

    def test_plain_cycles_say_nothing(self) -> None:
        policy = Ewma()
        for _ in range(9):
            policy.observe(cycle(0, 0))
        assert policy.choose(UNKNOWN) == 2


class TestStaged:
    def test_two_then_three_then_all(self) -> None:
        assert draft_lengths(Staged(), [9, 9, 9, 9, 1, 9, 9]) == [2, 3, 5, 5, 5, 2, 3]

    def test_any_partial_cycle_starts_again(self) -> None:
        assert draft_lengths(Staged(), [9, 2, 9, 9, 9]) == [2, 3, 2, 3, 5]

    def test_a_ceiling(self) -> None:
        assert draft_lengths(Staged(3), [9, 9, 9, 9]) == [2, 3, 3, 3]
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
        assert draft_lengths(Confidence(), accepted) == draft_lengths(Ewma(), accepted)

    def test_thresholds_out_of_range(self) -> None:
        with pytest.raises(RequestError, match="thresholds are"):
            Confidence([1.2])


class TestBreaker:
    def policy(self) -> Breaker:
        return Breaker(Fixed(4), acceptance=0.60, proposals=32, steps=64)

    def test_a_poor_run_turns_it_off_for_a_while(self) -> None:
        assert draft_lengths(self.policy(), [2] * 80) == [4] * 8 + [0] * 64 + [4] * 8

    def test_it_tries_again_and_opens_again(self) -> None:
        found = draft_lengths(self.policy(), [2] * 160)
        assert found[72:80] == [4] * 8 and set(found[80:144]) == {0}

    def test_a_good_run_never_trips_it(self) -> None:
        assert draft_lengths(self.policy(), [3] * 200) == [4] * 200

    def test_each_window_counts_alone(self) -> None:
        assert draft_lengths(self.policy(), [4] * 8 + [2] * 8 + [4]) == [4] * 16 + [0]

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
def test_no_request_inherits_another_ones_state(policy: DraftLengthPolicy) -> None:
    first = draft_lengths(policy, [5, 5, 5, 0, 5, 5])
    for _ in range(5):
        assert draft_lengths(policy, [5, 5, 5, 0, 5, 5]) == first
