"""The steps of a cycle by hand, who drafts, and what is counted."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from generating import CONTINUATION, GREEDY, PROMPT, VOCAB
from paths import GOLDEN

import ds4py
from ds4py import Engine, Sampling, Session
from ds4py.speculative import Cycle, Speculation, accept

pytestmark = [pytest.mark.fast, pytest.mark.on_device]


class TestByHand:
    def test_the_loop_of_the_documentation(self, prompted: Session) -> None:
        rng = ds4py.Rng(1)
        prompted.anchor = prompted.sample(GREEDY, rng)
        emitted = [prompted.anchor]
        while len(emitted) < 30:
            draft = prompted.draft()
            logits = prompted.verify(draft.tokens[:3])
            assert logits.shape == (4, VOCAB)
            n, token = accept(logits, draft, GREEDY, rng)
            prompted.commit(n, token)
            emitted += [*draft.tokens[:n].tolist(), token]
            assert (prompted.tokens, prompted.anchor) == (PROMPT + emitted[:-1], token)
        assert emitted == CONTINUATION[: len(emitted)]

    def test_rows_are_gone_after_any_other_call(self, prompted: Session) -> None:
        prompted.anchor = 5
        others: list[Callable[[], object]] = [
            lambda: prompted.rewind(len(PROMPT)),
            lambda: prompted.logits(),
            lambda: prompted.prefill([6]),
            lambda: prompted.commit(0, 9),
        ]
        for other in others:
            prompted.anchor = 5
            prompted.verify([6, 7])
            other()
            prompted.anchor = 5
            with pytest.raises(ds4py.RequestError, match="cannot commit"):
                prompted.commit(0, 8)

    def test_a_commit_that_fails_changes_nothing(self, prompted: Session) -> None:
        prompted.anchor = 5
        prompted.verify([6, 7])
        for n, token, message in ((3, 8, "cannot commit 4 rows"), (0, VOCAB, "vocabulary"), (-1, 8, "cannot commit 0")):
            with pytest.raises(ds4py.RequestError, match=message):
                prompted.commit(n, token)
            assert (prompted.position, prompted.anchor) == (len(PROMPT), 5)
        prompted.prefill([6, 7, 8])  # as far as the refused commits would have come
        assert prompted.anchor is None

    def test_without_an_anchor(self, prompted: Session) -> None:
        for call in (prompted.draft, prompted.verify, lambda: prompted.commit(0, 1)):
            with pytest.raises(ds4py.RequestError, match="there is no anchor"):
                call()
        with pytest.raises(ds4py.RequestError, match="not in the vocabulary"):
            prompted.anchor = VOCAB

    def test_an_anchor_can_be_taken_back(self, prompted: Session) -> None:
        before = prompted.logits()
        prompted.anchor = 5
        prompted.anchor = None
        np.testing.assert_array_equal(prompted.logits(), before)
        assert prompted.tokens == PROMPT

    def test_sampled_drafts_come_with_their_q(self, prompted: Session) -> None:
        prompted.anchor = CONTINUATION[0]
        rng = ds4py.Rng(1)
        draft = prompted.draft(Sampling(temperature=0.8), rng, shortlist=40)
        assert draft.q_ids is not None and draft.q_probs.shape == draft.q_ids.shape == (5, 40)
        np.testing.assert_allclose(draft.q_probs.sum(axis=1), 1, atol=1e-5)
        assert rng.counter > 0
        greedy = prompted.draft()
        assert greedy.q_probs.tolist() == [[1.0]] * 5 and greedy.q_ids is not None
        assert greedy.q_ids[:, 0].tolist() == greedy.tokens.tolist()
        assert len(greedy.first(2)) == 2 and len(greedy.first(9)) == 5


class TestChoosing:
    def test_what_auto_is(self, prompted: Session, tiny: Engine) -> None:
        list(prompted.generate(max_tokens=2, sampling=GREEDY))
        assert prompted.stats.speculation.drafter == "dspark+lookup"
        with tiny.session(context=64) as session:
            list(session.generate([3, 4], max_tokens=2))
            assert session.stats.speculation.drafter == "off"

    def test_dspark_without_a_drafter(self, tiny: Engine) -> None:
        with tiny.session(context=64) as session:
            with pytest.raises(ds4py.RequestError, match=r"there is no drafter: load one .*-md"):
                session.generate([3, 4], draft="dspark", width=15)
            session.prefill([3, 4])
            session.anchor = 5
            with pytest.raises(ds4py.RequestError, match="no drafter"):
                session.draft()

    @pytest.mark.parametrize(
        ("request_", "message"),
        [
            ({"draft": "mtp"}, "draft is 'mtp'"),
            ({"draft": None}, "draft is None"),
            ({"accept": "typical"}, "accept is 'typical'"),
            ({"draft_vocab": -1}, "draft_vocab is -1"),
        ],
    )
    def test_wrong_requests_change_nothing(self, prompted: Session, request_: dict[str, object], message: str) -> None:
        with pytest.raises(ds4py.RequestError, match=message):
            prompted.generate([3, 4], **request_)
        assert prompted.tokens == PROMPT

    def test_the_embedded_pair(self) -> None:
        with Engine() as engine, engine.session() as session:
            assert str(engine.drafter).startswith("contract dflash, 2 stages, block 5, rank 64, taps 1,3,5, noise 7")
            list(session.generate("abc", max_tokens=4))
            assert session.stats.speculation.drafter == "dspark+lookup"

    def test_a_drafter_of_another_target(self) -> None:
        with pytest.raises(ds4py.PairError):
            Engine(GOLDEN / "hard-target-f32.gguf", drafter=GOLDEN / "tiny-drafter-f32.gguf", device="cpu")

    def test_a_target_as_drafter(self) -> None:
        with pytest.raises(ds4py.FormatError, match="-m"):
            Engine(drafter=GOLDEN / "tiny-target-f32.gguf")

    def test_progress_covers_both_files(self) -> None:
        seen: list[float] = []
        Engine(progress=seen.append)
        assert seen == sorted(seen)
        assert 0 < seen[0] < seen[-1] == 1


class TestStatistics:
    CYCLES = (
        Cycle(0, 0, 0, 0.001, 0.1),
        Cycle(3, 3, 0.002, 0.004, 0.1, (0.9, 0.8, 0.7)),
        Cycle(3, 1, 0.004, 0.006, 0.1),
    )

    def test_by_hand(self) -> None:
        found = Speculation("dspark", [*self.CYCLES, Cycle(2, 0, 0.006, 0.005, 0.1, (0.5, 0.1))])
        assert (found.plain_cycles, found.drafted, found.accepted) == (1, 8, 4)
        assert (found.acceptance, found.emitted_per_cycle) == (0.5, 2.0)
        assert found.survival == 4 / 6  # six were judged: 3, 2 and 1
        assert found.widths == [1, 0, 1, 2]
        assert found.accepted_histogram == [2, 1, 0, 1]
        assert found.verified_by_position == [3, 3, 2]
        assert found.accepted_by_position == [2, 1, 1]
        assert found.acceptance_by_position == [2 / 3, 1 / 3, 1 / 2]
        assert found.survival_by_position == [2 / 3, 1 / 2, 1.0]
        assert found.confidence_by_position == pytest.approx([0.7, 0.8, 0.7])
        assert found.draft_ms == pytest.approx((4, 12))
        assert found.verify_ms == pytest.approx((4.5, 16))
        assert found.verify_ms_by_width == pytest.approx([1, 0, 5, 5])

    def test_of_nothing(self) -> None:
        found = Speculation().as_dict()
        assert (found["cycles"], found["acceptance"], found["emitted_per_cycle"], found["widths"]) == (0, 0, 0, [])

    def test_of_a_generation(self, prompted: Session) -> None:
        list(prompted.generate(max_tokens=40, sampling=GREEDY, draft="dspark", width=15))
        stats, found = prompted.stats, prompted.stats.speculation
        assert stats.generated_tokens == 40 == 1 + found.accepted + len(found.cycles)
        assert 0 < found.accepted < found.drafted
        assert len(found.confidence_by_position) == 5 and all(0 < c < 1 for c in found.confidence_by_position)
        assert min(found.draft_ms.median, found.verify_ms.median, found.accept_ms.median) > 0
        spent = found.draft_ms.total + found.verify_ms.total + found.accept_ms.total
        assert 0 < spent / 1000 / stats.generate_seconds <= 1
