"""The speculative loop: what is emitted does not depend on the proposals."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from device import DEVICE
from generating import CONTINUATION, GREEDY, PROMPT, VOCAB, ids_of, oracle
from paths import GOLDEN

import ds4py
from ds4py import Engine, Sampling, Session, _native
from ds4py.speculative import Costs, Draft, DraftRequest, DSparkDrafter, Fixed, Loop, Offer, ScriptedDrafter, Width

pytestmark = pytest.mark.on_device


class TestRows:
    @pytest.mark.parametrize("width", [1, 2, 5, 15])
    def test_right_proposals_are_all_accepted(self, prompted: Session, width: int) -> None:
        cycles = 48 // (width + 1)
        pieces = list(prompted.generate(max_tokens=1 + 48, sampling=GREEDY, draft=oracle(), width=width))
        assert ids_of(pieces) == CONTINUATION[:49]
        assert prompted.stats.speculation.accepted_histogram == [0] * width + [cycles]
        assert [len(piece.tokens) for piece in pieces] == [1] + [width + 1] * cycles

    def test_proposals_one_off_are_all_rejected(self, prompted: Session) -> None:
        shifted = ScriptedDrafter(lambda history: CONTINUATION[len(history) - len(PROMPT) + 1 :][:5])
        pieces = list(prompted.generate(max_tokens=40, sampling=GREEDY, draft=shifted, width=15))
        assert ids_of(pieces) == CONTINUATION[:40]
        assert prompted.stats.speculation.accepted == 0
        assert prompted.stats.speculation.drafted > 150

    @pytest.mark.parametrize("right", range(6))
    def test_the_first_wrong_proposal_ends_the_block(self, prompted: Session, right: int) -> None:
        """Even where those after it are what plain decoding emits."""

        def script(history: np.ndarray) -> list[int]:
            block = CONTINUATION[len(history) - len(PROMPT) :][:6]
            return block[:right] + [(token + 1) % VOCAB for token in block[right : right + 1]] + block[right + 1 :]

        pieces = list(prompted.generate(max_tokens=50, sampling=GREEDY, draft=ScriptedDrafter(script), width=15))
        assert ids_of(pieces) == CONTINUATION[:50]
        whole = [cycle for cycle in prompted.stats.speculation.cycles if cycle.width == 6]
        assert len(whole) >= 6 and {cycle.accepted for cycle in whole} == {right}

    def test_any_proposals_give_the_same_text(self, prompted: Session) -> None:
        rng = np.random.default_rng(5)

        def script(history: np.ndarray) -> list[int] | None:
            block = CONTINUATION[len(history) - len(PROMPT) :][: rng.integers(0, 16)]
            proposals = [token if rng.random() < 0.8 else int(rng.integers(VOCAB)) for token in block]
            return proposals if rng.random() < 0.9 else None

        for _ in range(8):
            prompted.rewind(len(PROMPT))
            pieces = list(prompted.generate(max_tokens=60, sampling=GREEDY, draft=ScriptedDrafter(script), width=15))
            assert ids_of(pieces) == CONTINUATION
            assert len(prompted.stats.speculation.accepted_histogram) > 4

    @pytest.mark.parametrize("penalties", [{"repetition_penalty": 1.5}, {"logit_bias": {7: 3.0}}])
    def test_greedy_with_a_policy_of_its_own(self, prompted: Session, penalties: dict[str, object]) -> None:
        """The drafter and each verified row see the bias, and the tokens before them."""
        policy = Sampling(temperature=0, **penalties)
        plain = ids_of(list(prompted.generate(max_tokens=40, sampling=policy, draft="off")))
        assert plain != CONTINUATION[:40]
        right = ScriptedDrafter(lambda history: plain[len(history) - len(PROMPT) :][:5])
        for draft in ("dspark", right):
            prompted.rewind(len(PROMPT))
            assert ids_of(list(prompted.generate(max_tokens=40, sampling=policy, draft=draft, width=15))) == plain
        assert prompted.stats.speculation.acceptance == 1

    def test_the_golden_rounds(self, pair: Engine) -> None:
        golden = np.load(GOLDEN / "drafter-golden.npz")["rounds_ring"]
        seen: list[list[int]] = []

        class Recorded(DSparkDrafter):
            def propose(self, session: Session, request: DraftRequest, width: int) -> Draft:
                draft = super().propose(session, request, width)
                seen.append([session.position, session.anchor, *draft.tokens.tolist()])
                return draft

        with pair.session(context=512, kv_dtype="f32") as session:
            list(session.generate(PROMPT, max_tokens=96, sampling=GREEDY, draft=Recorded(shortlist=0), width=15))
            accepted = [cycle.accepted for cycle in session.stats.speculation.cycles]
        found = [[*row, n] for row, n in zip(seen, accepted, strict=False)]
        assert found[: len(golden)] == golden.tolist()


class TestDSpark:
    def test_sampled_requests_get_proposals_with_their_q(self, prompted: Session) -> None:
        request = DraftRequest.of(Sampling(seed=1))
        prompted.anchor = CONTINUATION[0]
        drawn = [DSparkDrafter(shortlist=40).propose(prompted, request, 5) for _ in range(4)]
        assert all(draft.q_probs.shape == (5, 40) and draft.q_ids is not None for draft in drawn)
        assert len({tuple(draft.tokens) for draft in drawn}) > 1
        greedy = DSparkDrafter(shortlist=40, proposals="greedy").propose(prompted, request, 5)
        assert greedy.q_probs.tolist() == [[1.0]] * 5
        assert greedy.tokens.tolist() == prompted.draft(shortlist=40).tokens.tolist()

    def test_greedy_requests_propose_by_their_policy(self, prompted: Session) -> None:
        prompted.anchor = CONTINUATION[0]
        plain = DSparkDrafter().propose(prompted, DraftRequest.of(GREEDY), 5)
        assert 7 not in plain.tokens
        biased = DraftRequest.of(Sampling(temperature=0, logit_bias={7: 100.0}))
        assert DSparkDrafter().propose(prompted, biased, 5).tokens.tolist() == [7] * 5

    def test_wrong_arguments(self) -> None:
        with pytest.raises(ds4py.RequestError, match="proposals is 'best'"):
            DSparkDrafter(proposals="best")  # type: ignore[arg-type]
        with pytest.raises(ds4py.RequestError, match="draft_vocab is -1"):
            DSparkDrafter(shortlist=-1)


class TestWidth:
    def test_wrong_widths(self, prompted: Session) -> None:
        for width in (-1, 16, 2.5):
            with pytest.raises(ds4py.RequestError, match="wanted 0 to 15"):
                prompted.generate(sampling=GREEDY, width=width)

    def test_a_drafter_is_not_asked_for_nothing(self, prompted: Session) -> None:
        def fail(history: np.ndarray) -> list[int]:
            raise AssertionError("asked")

        pieces = list(prompted.generate(max_tokens=6, sampling=GREEDY, draft=ScriptedDrafter(fail), width=0))
        assert ids_of(pieces) == CONTINUATION[:6]
        assert prompted.stats.speculation.widths == [5]

    def test_widths_are_chosen_before_the_draft(self, prompted: Session) -> None:
        """And cut to what is proposed and to what may still be emitted."""
        events: list[str] = []
        choices = iter([3, 5, 0, 15, 2])

        class Told(Width):
            def choose(self, offer: Offer) -> int:
                events.append("width")
                return next(choices)

        def script(history: np.ndarray) -> list[int]:
            events.append("draft")
            return CONTINUATION[len(history) - len(PROMPT) :][:4]

        pieces = list(prompted.generate(max_tokens=17, sampling=GREEDY, draft=ScriptedDrafter(script), width=Told()))
        assert ids_of(pieces) == CONTINUATION[:17]
        assert [cycle.width for cycle in prompted.stats.speculation.cycles] == [3, 4, 0, 4, 0]
        assert events == ["width", "draft", "width", "draft", "width", "width", "draft"]

    def test_a_policy_is_held_to_what_a_state_can_hold(self, prompted: Session) -> None:
        class Wide(Width):
            def choose(self, offer: Offer) -> int:
                return 99

        def script(history: np.ndarray) -> list[int]:
            return CONTINUATION[len(history) - len(PROMPT) :][:20]

        pieces = list(prompted.generate(max_tokens=40, sampling=GREEDY, draft=ScriptedDrafter(script), width=Wide()))
        assert ids_of(pieces) == CONTINUATION[:40]
        assert max(cycle.width for cycle in prompted.stats.speculation.cycles) == 15

    def test_a_text_that_repeats_itself_is_looked_up_without_known_costs(self, prompted: Session) -> None:
        prompted.costs = Costs()
        prompted.rewind(0)
        list(prompted.generate([5, 6, 7, 8] * 8, max_tokens=24, sampling=GREEDY, width=5))
        assert set(prompted.stats.speculation.drafters) <= {"dspark", "lookup"}
        assert "lookup" in prompted.stats.speculation.drafters


class TestSampled:
    @pytest.mark.parametrize("rule", ["token", "match", "block"])
    def test_seeds_repeat(self, prompted: Session, rule: str) -> None:
        def run(seed: int) -> list[int]:
            prompted.rewind(len(PROMPT))
            pieces = prompted.generate(
                max_tokens=24, sampling=Sampling(seed=seed), draft="dspark", width=15, accept=rule
            )
            return ids_of(list(pieces))

        assert run(3) == run(3)
        assert run(3) != run(4)

    def test_the_first_token_is_drawn_too(self, prompted: Session) -> None:
        first = set()
        for seed in range(8):
            prompted.rewind(len(PROMPT))
            first.update(ids_of(list(prompted.generate(max_tokens=1, sampling=Sampling(seed=seed)))))
        assert len(first) > 2

    def test_each_cycle_draws_anew(self, prompted: Session) -> None:
        """The same block, judged again and again at one state, is not judged by the same chances."""
        request = DraftRequest.of(Sampling(seed=11))
        prompted.anchor = CONTINUATION[0]
        loop = Loop(prompted, request, [ScriptedDrafter(lambda _: CONTINUATION[1:4])], Fixed())
        found, counters = set(), []
        for _ in range(12):
            found.add(tuple(loop.cycle(9)))
            counters.append(request.rng.counter)
        assert len(found) > 6
        assert counters == sorted(set(counters))

    def test_greedy_draws_nothing(self, prompted: Session) -> None:
        request = DraftRequest.of(GREEDY)
        prompted.anchor = CONTINUATION[0]
        for drafters in ([DSparkDrafter()], [oracle()], []):
            Loop(prompted, request, drafters, Fixed()).cycle(9)
        assert request.rng.counter == 0

    @pytest.mark.parametrize(
        ("proposals", "rule"),
        [("point", "token"), ("point", "match"), ("drawn", "token"), ("drawn", "block"), ("dspark", "token")],
    )
    def test_the_first_token_of_a_cycle_follows_the_target(self, prompted: Session, proposals: str, rule: str) -> None:
        """A check of the wiring, on the five tokens a policy leaves; the rules have finer tests of their own."""
        policy = Sampling(top_k=5, temperature=1.5, seed=2)
        wanted = self.distribution(prompted, policy)
        likely = np.argsort(wanted)[::-1][:5].astype(np.int32)
        rng = np.random.default_rng(3)

        def drawn(history: np.ndarray) -> Draft:
            return Draft(rng.choice(likely, 2), np.full((2, 5), 0.2, np.float32), np.stack([likely, likely]))

        drafter = {
            "point": ScriptedDrafter(lambda _: likely[1:3]),
            "drawn": ScriptedDrafter(drawn),
            "dspark": DSparkDrafter(shortlist=64),
        }[proposals]
        loop = Loop(prompted, DraftRequest.of(policy), [drafter], Fixed(2), rule)
        draws = 300
        counts = np.bincount([loop.cycle(9)[0] for _ in range(draws)], minlength=VOCAB)
        assert counts[wanted == 0].sum() == 0
        live = wanted > 0
        chi2 = ((counts[live] - draws * wanted[live]) ** 2 / (draws * wanted[live])).sum()
        assert chi2 < 23.5  # one in 10,000 with 4 degrees of freedom

    def distribution(self, session: Session, policy: Sampling) -> np.ndarray:
        """What follows the first token of the continuation, which becomes the anchor."""
        session.anchor = CONTINUATION[0]
        logits = session.verify()[0].copy()
        return _native.Sampler(policy.policy()).distribution(logits).copy()


@pytest.mark.skipif(DEVICE != "cpu", reason="takes a device too long")
def test_200_prompts_at_every_width(pair: Engine) -> None:
    """Speculation gives plain decoding's tokens: the drafter's proposals, and half right ones that it never makes."""
    rng = np.random.default_rng(1)
    prompts = [rng.integers(3, VOCAB - 1, rng.integers(4, 20)).tolist() for _ in range(200)]

    def run(chunk: list[list[int]]) -> Counter[tuple[int, int]]:
        accepted: Counter[tuple[int, int]] = Counter()
        with pair.session(context=64) as session:
            for prompt in chunk:
                session.rewind(0)
                plain = ids_of(list(session.generate(prompt, max_tokens=24, sampling=GREEDY, width=0)))
                for width in range(1, 6):
                    session.rewind(0)
                    drafter = Alternating(prompt, plain)
                    pieces = session.generate(prompt, max_tokens=24, sampling=GREEDY, draft=drafter, width=width)
                    assert ids_of(list(pieces)) == plain
                    accepted.update((cycle.width, cycle.accepted) for cycle in session.stats.speculation.cycles)
        return accepted

    with ThreadPoolExecutor(2) as pool:
        accepted = sum(pool.map(run, (prompts[:100], prompts[100:])), Counter())
    assert set(accepted) == {(width, n) for width in range(6) for n in range(width + 1)}


class Alternating:
    """The engine's drafter in every fourth cycle; else the right tokens, each with a chance of being another."""

    name = "alternating"

    def __init__(self, prompt: list[int], plain: list[int]) -> None:
        self._tokens = prompt + plain
        self._rng = np.random.default_rng(len(prompt))
        self._cycle = 0

    def propose(self, session: Session, request: DraftRequest, width: int) -> Draft:
        self._cycle += 1
        if self._cycle % 4 == 1:
            return DSparkDrafter().propose(session, request, width)
        block = self._tokens[session.position + 1 :][:5]
        return Draft.point_mass([t if self._rng.random() < 0.8 else (t + 1) % VOCAB for t in block])
