"""The speculative loop: what is emitted, what stays in the state, and that neither depends on the proposals."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from gguf_tools import GOLDEN

import ds4py
from ds4py import Engine, Piece, Sampling, Session, _native
from ds4py.speculative import (
    Cycle,
    Draft,
    DSparkDrafter,
    Fixed,
    Loop,
    Request,
    ScriptedDrafter,
    Speculation,
    accept,
)

GREEDY = Sampling(temperature=0)
VOCAB = 512
LOGITS = 1e-4  # the same position among other rows, with keys kept as F16
PROMPT: list[int] = np.load(GOLDEN / "target-golden.npz")["tokens"][:302].tolist()
CONTINUATION: list[int] = np.load(GOLDEN / "target-golden.npz")["greedy"][:60].tolist()  # no token twice in a row


@pytest.fixture(scope="module")
def pair() -> Iterator[Engine]:
    """The tiny target with its drafter."""
    target, drafter = GOLDEN / "tiny-target-f32.gguf", GOLDEN / "tiny-drafter-f32.gguf"
    with Engine(target, drafter=drafter, device="cpu", threads=1) as engine:
        yield engine


@pytest.fixture(scope="module")
def shared(pair: Engine) -> Iterator[Session]:
    """A session for whoever begins by emptying it."""
    with pair.session(context=512) as session:
        yield session


@pytest.fixture
def prompted(shared: Session) -> Session:
    """A session that holds the prompt."""
    shared.rewind(0)
    shared.prefill(PROMPT)
    return shared


def ids_of(pieces: Sequence[Piece]) -> list[int]:
    return [token for piece in pieces for token in piece.tokens]


def text_of(pieces: Sequence[Piece]) -> str:
    return "".join(piece.text for piece in pieces)


class Outcome(NamedTuple):
    """Everything that must not depend on how a text was drafted."""

    text: str
    ids: list[int]
    reason: str | None
    tokens: list[int]
    anchor: int | None
    logits: np.ndarray

    @classmethod
    def of(cls, session: Session, pieces: Sequence[Piece]) -> Outcome:
        state = session.tokens, session.anchor  # before the logits, which put the anchor into the state
        return cls(text_of(pieces), ids_of(pieces), pieces[-1].finish_reason, *state, session.logits())

    def same(self, other: Outcome) -> bool:
        return self[:5] == other[:5] and bool(np.abs(self.logits - other.logits).max() <= LOGITS)


def oracle(right: int = 15, then: int = 0) -> ScriptedDrafter:
    """Proposes `right` tokens of the greedy continuation, then `then` others that are all wrong."""

    def script(history: np.ndarray) -> list[int]:
        at = len(history) - len(PROMPT)
        wrong = [(token + 1) % VOCAB for token in CONTINUATION[at + right : at + right + then]]
        return CONTINUATION[at : at + right] + wrong

    return ScriptedDrafter(script)


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
        pieces = list(prompted.generate(max_tokens=40, sampling=GREEDY, draft=shifted))
        assert ids_of(pieces) == CONTINUATION[:40]
        assert prompted.stats.speculation.accepted == 0
        assert prompted.stats.speculation.drafted > 150

    @pytest.mark.parametrize("right", range(6))
    def test_the_first_wrong_proposal_ends_the_block(self, prompted: Session, right: int) -> None:
        """Even where those after it are what plain decoding emits."""

        def script(history: np.ndarray) -> list[int]:
            block = CONTINUATION[len(history) - len(PROMPT) :][:6]
            return block[:right] + [(token + 1) % VOCAB for token in block[right : right + 1]] + block[right + 1 :]

        pieces = list(prompted.generate(max_tokens=50, sampling=GREEDY, draft=ScriptedDrafter(script)))
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
            pieces = list(prompted.generate(max_tokens=60, sampling=GREEDY, draft=ScriptedDrafter(script)))
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
            assert ids_of(list(prompted.generate(max_tokens=40, sampling=policy, draft=draft))) == plain
        assert prompted.stats.speculation.acceptance == 1

    def test_the_golden_rounds(self, pair: Engine) -> None:
        golden = np.load(GOLDEN / "drafter-golden.npz")["rounds_ring"]
        seen: list[list[int]] = []

        class Recorded(DSparkDrafter):
            def propose(self, session: Session, request: Request, width: int) -> Draft:
                draft = super().propose(session, request, width)
                seen.append([session.position, session.anchor, *draft.tokens.tolist()])
                return draft

        with pair.session(context=512, kv_dtype="f32") as session:
            list(session.generate(PROMPT, max_tokens=96, sampling=GREEDY, draft=Recorded(shortlist=0)))
            accepted = [cycle.accepted for cycle in session.stats.speculation.cycles]
        found = [[*row, n] for row, n in zip(seen, accepted, strict=False)]
        assert found[: len(golden)] == golden.tolist()


class TestEndings:
    """Every ending against plain decoding's, with blocks that go on behind it."""

    DRAFTS = ("off", oracle(5), oracle(2, 3))

    def same(self, prompted: Session, **request: object) -> Outcome:
        found = []
        for draft in self.DRAFTS:
            prompted.rewind(len(PROMPT))
            pieces = list(prompted.generate(sampling=GREEDY, draft=draft, **request))
            found.append(Outcome.of(prompted, pieces))
        assert all(each.same(found[0]) for each in found)
        return found[0]

    @pytest.mark.parametrize("at", range(14))
    def test_end_of_text(self, prompted: Session, monkeypatch: pytest.MonkeyPatch, at: int) -> None:
        stops = property(lambda _: frozenset({CONTINUATION[at]}))
        monkeypatch.setattr(type(prompted.tokenizer), "stop_ids", stops)
        found = self.same(prompted)
        shown = CONTINUATION[: CONTINUATION.index(CONTINUATION[at])]
        assert (found.ids, found.reason) == (shown, "stop")
        assert found.tokens == PROMPT + shown

    def test_stop_strings(self, prompted: Session) -> None:
        text = prompted.tokenizer.decode(CONTINUATION[:30])
        stops = {text[at : at + length] for at in range(2, 24, 4) for length in (1, 3, 7)}
        for stop in sorted(stops):
            found = self.same(prompted, stop=[stop], max_tokens=50)
            assert found.reason == "stop"
            assert found.text == text[: text.index(stop)]
            assert found.text.startswith(prompted.tokenizer.decode(found.tokens[len(PROMPT) :]))

    @pytest.mark.parametrize("budget", range(14))
    def test_budget(self, prompted: Session, budget: int) -> None:
        found = self.same(prompted, max_tokens=budget)
        assert (found.ids, found.reason) == (CONTINUATION[:budget], "length")
        assert [*found.tokens, found.anchor][: len(PROMPT) + budget] == PROMPT + CONTINUATION[:budget]

    @pytest.mark.parametrize("room", range(9))
    def test_a_full_context(self, pair: Engine, room: int) -> None:
        with pair.session(context=len(PROMPT) + room) as session:
            for draft in ("off", "dspark", "lookup", oracle()):
                session.rewind(0)
                pieces = list(session.generate(PROMPT, sampling=GREEDY, draft=draft))
                assert (ids_of(pieces), pieces[-1].finish_reason) == (CONTINUATION[:room], "length")
                session.logits()
                assert session.tokens == PROMPT + CONTINUATION[:room]

    @pytest.mark.parametrize("taken", [1, 2, 3])
    def test_an_abandoned_iterator_keeps_what_it_gave(self, prompted: Session, taken: int) -> None:
        stream = prompted.generate(sampling=GREEDY, draft=oracle(), width=3)
        first = ids_of([next(stream) for _ in range(taken)])
        stream.close()
        assert [*prompted.tokens, prompted.anchor] == PROMPT + first
        rest = ids_of(list(prompted.generate(max_tokens=20, sampling=GREEDY, draft="dspark")))
        assert first + rest == CONTINUATION[: len(first) + 20]

    def test_text_is_the_decode_of_the_ids(self, prompted: Session) -> None:
        """Of many texts, most of which hold characters that are spread over tokens and blocks."""
        broken = 0
        for seed in range(12):
            prompted.rewind(len(PROMPT))
            policy = Sampling(seed=seed)
            plain = ids_of(list(prompted.generate(max_tokens=40, sampling=policy, draft="off")))
            prompted.rewind(len(PROMPT))
            repeat = ScriptedDrafter(lambda history, ids=plain: ids[len(history) - len(PROMPT) :][:5])
            pieces = list(prompted.generate(max_tokens=40, sampling=policy, draft=repeat, accept="match"))
            assert text_of(pieces) == prompted.tokenizer.decode(ids_of(pieces))
            broken += any(text_of([piece]) != prompted.tokenizer.decode(piece.tokens) for piece in pieces)
        assert broken > 3


class TestInterruptions:
    def finish(self, session: Session, given: list[int]) -> None:
        """The state is as after the last piece: it goes on from there as if nothing had been."""
        assert session.history().tolist() == PROMPT + given
        rest = ids_of(list(session.generate(max_tokens=12, sampling=GREEDY, draft="dspark")))
        assert given + rest == CONTINUATION[: len(given) + 12]

    @pytest.mark.parametrize("draft", ["off", "dspark", "lookup"])
    def test_cancel_between_pieces(self, prompted: Session, draft: str) -> None:
        stream = prompted.generate(sampling=GREEDY, draft=draft)
        given = ids_of([next(stream) for _ in range(4)])
        prompted.cancel()
        with pytest.raises(ds4py.Cancelled):
            next(stream)
        self.finish(prompted, given)

    def test_cancel_between_draft_and_verify(self, prompted: Session) -> None:
        def script(history: np.ndarray) -> list[int]:
            if len(history) > len(PROMPT) + 6:
                prompted.cancel()
            return CONTINUATION[len(history) - len(PROMPT) :][:3]

        given: list[int] = []
        with pytest.raises(ds4py.Cancelled):
            given.extend(
                token
                for piece in prompted.generate(sampling=GREEDY, draft=ScriptedDrafter(script))
                for token in piece.tokens
            )
        self.finish(prompted, CONTINUATION[:9])

    @pytest.mark.parametrize("error", [ZeroDivisionError, KeyboardInterrupt])
    def test_an_exception_in_a_drafter(self, prompted: Session, error: type[BaseException]) -> None:
        def script(history: np.ndarray) -> list[int]:
            if len(history) > len(PROMPT) + 1:
                raise error
            return CONTINUATION[1:4]

        stream = prompted.generate(sampling=GREEDY, draft=ScriptedDrafter(script))
        given = ids_of([next(stream), next(stream)])
        with pytest.raises(error):
            next(stream)
        self.finish(prompted, given)

    @pytest.mark.parametrize(
        "proposals",
        [
            [VOCAB],
            Draft(np.array([3, 4], np.int32), np.ones((2, 3), np.float32)),
            Draft(np.array([3], np.int32), np.ones((1, 1), np.float32), np.array([[4]], np.int32)),
        ],
    )
    def test_a_drafter_that_makes_no_sense(self, prompted: Session, proposals: object) -> None:
        stream = prompted.generate(sampling=Sampling(seed=1), draft=ScriptedDrafter(lambda _: proposals))
        given = ids_of([next(stream)])
        with pytest.raises(ds4py.RequestError):
            next(stream)
        assert prompted.history().tolist() == PROMPT + given
        assert len(ids_of(list(prompted.generate(max_tokens=9)))) == 9

    @pytest.mark.parametrize("name", ["sample", "draft", "verify", "commit", "prefill", "rewind"])
    def test_ctrl_c_right_after_a_native_call(self, prompted: Session, name: str) -> None:
        """The interpreter may raise KeyboardInterrupt before it stores what the call returned."""
        native = prompted._live
        for count in range(3):
            prompted.rewind(len(PROMPT))
            prompted._state = Interrupted(native, name, count)
            given: list[int] = []
            try:
                for piece in prompted.generate(max_tokens=9, sampling=GREEDY, draft="dspark"):
                    given += piece.tokens
                prompted.prefill(CONTINUATION[9:10])
                prompted.rewind(len(PROMPT) + 5)
                given = CONTINUATION[:5]  # as many as the last line has kept
            except KeyboardInterrupt:
                pass
            finally:
                prompted._state = native
            # Nothing is lost or doubled: what the history holds is the continuation's beginning.
            history = prompted.history().tolist()
            assert history == (PROMPT + CONTINUATION)[: len(history)]
            if name not in ("commit", "prefill", "rewind"):
                assert history == PROMPT + given
            rest = ids_of(list(prompted.generate(max_tokens=12, sampling=GREEDY, draft="dspark")))
            assert history + rest == (PROMPT + CONTINUATION)[: len(history) + 12]


class Interrupted:
    """A native session whose call `name` is followed by Ctrl-C, the first `count` times excepted."""

    def __init__(self, native: _native.Session, name: str, count: int) -> None:
        self._native, self._name, self._count = native, name, count

    def __getattr__(self, name: str) -> object:
        found = getattr(self._native, name)
        if name != self._name:
            return found

        def call(*args: object, **kwargs: object) -> object:
            result = found(*args, **kwargs)
            self._count -= 1
            if self._count == -1:
                raise KeyboardInterrupt
            return result

        return call


class TestSampled:
    @pytest.mark.parametrize("rule", ["token", "match", "block"])
    def test_seeds_repeat(self, prompted: Session, rule: str) -> None:
        def run(seed: int) -> list[int]:
            prompted.rewind(len(PROMPT))
            pieces = prompted.generate(max_tokens=24, sampling=Sampling(seed=seed), draft="dspark", accept=rule)
            return ids_of(list(pieces))

        assert run(3) == run(3)
        assert run(3) != run(4)

    def test_each_cycle_draws_anew(self, prompted: Session) -> None:
        """The same block, judged again and again at one state, is not judged by the same chances."""
        request = Request.of(Sampling(seed=11))
        prompted.anchor = CONTINUATION[0]
        loop = Loop(prompted, request, ScriptedDrafter(lambda _: CONTINUATION[1:4]), Fixed())
        found, counters = set(), []
        for _ in range(12):
            found.add(tuple(loop.cycle(9)))
            counters.append(request.rng.counter)
        assert len(found) > 6
        assert counters == sorted(set(counters))

    def test_greedy_draws_nothing(self, prompted: Session) -> None:
        request = Request.of(GREEDY)
        prompted.anchor = CONTINUATION[0]
        for drafter in (DSparkDrafter(), oracle(), None):
            Loop(prompted, request, drafter, Fixed()).cycle(9)
        assert request.rng.counter == 0

    @pytest.mark.parametrize(
        ("proposals", "rule"),
        [("point", "token"), ("point", "match"), ("point", "block"), ("dspark", "token"), ("likeliest", "block")],
    )
    def test_the_first_token_of_a_cycle_follows_the_target(self, prompted: Session, proposals: str, rule: str) -> None:
        """A check of the wiring, on the five tokens a policy leaves; the rules have finer tests of their own."""
        policy = Sampling(top_k=5, temperature=1.5, seed=2)
        wanted = self.distribution(prompted, policy)
        likely = np.argsort(wanted)[::-1][:2].tolist()
        drafter = {
            "point": ScriptedDrafter(lambda _: likely[::-1]),
            "dspark": DSparkDrafter(shortlist=64),
            "likeliest": DSparkDrafter(proposals="greedy"),
        }[proposals]
        loop = Loop(prompted, Request.of(policy), drafter, Fixed(2), rule)
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

        class Told:
            def choose(self) -> int:
                events.append("width")
                return next(choices)

        def script(history: np.ndarray) -> list[int]:
            events.append("draft")
            return CONTINUATION[len(history) - len(PROMPT) :][:4]

        pieces = list(prompted.generate(max_tokens=17, sampling=GREEDY, draft=ScriptedDrafter(script), width=Told()))
        assert ids_of(pieces) == CONTINUATION[:17]
        assert [cycle.width for cycle in prompted.stats.speculation.cycles] == [3, 4, 0, 4, 0]
        assert events == ["width", "draft", "width", "draft", "width", "width", "draft", "width"]


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


class TestSaving:
    @pytest.mark.parametrize("with_drafter", [True, False])
    def test_in_the_middle_of_a_generation(
        self, pair: Engine, tiny: Engine, prompted: Session, tmp_path: Path, with_drafter: bool
    ) -> None:
        stream = prompted.generate(sampling=GREEDY, draft="dspark")
        given = ids_of([next(stream) for _ in range(5)])
        prompted.save(tmp_path / "state")
        rest = ids_of([next(stream) for _ in range(9)])  # goes on after the save
        assert given + rest == CONTINUATION[: len(given) + len(rest)]
        engine = pair if with_drafter else tiny
        with engine.session(context=512) as other, engine.load_session(tmp_path / "state") as session:
            other.prefill(PROMPT)
            assert (session.drafter is not None) == with_drafter
            pieces = list(session.generate(max_tokens=len(rest) + 9, sampling=GREEDY))
            assert ids_of(pieces)[: len(rest)] == rest
            assert session.tokens[: len(PROMPT) + len(given)] == PROMPT + given
        if with_drafter:  # what the drafter knew was saved, too: it proposes the same
            assert session.stats.speculation.accepted > 0


class TestChoosing:
    def test_what_auto_is(self, prompted: Session, tiny: Engine) -> None:
        list(prompted.generate(max_tokens=2, sampling=GREEDY))
        assert prompted.stats.speculation.drafter == "dspark"
        with tiny.session(context=64) as session:
            list(session.generate([3, 4], max_tokens=2))
            assert session.stats.speculation.drafter == "off"

    def test_dspark_without_a_drafter(self, tiny: Engine) -> None:
        with tiny.session(context=64) as session:
            with pytest.raises(ds4py.RequestError, match=r"there is no drafter: load one .*-md"):
                session.generate([3, 4], draft="dspark")
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
            assert str(engine.drafter).startswith("contract dflash, 3 stages, block 5, rank 32, taps 3,4,5, noise 511")
            list(session.generate("abc", max_tokens=4))
            assert session.stats.speculation.drafter == "dspark"

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
        list(prompted.generate(max_tokens=40, sampling=GREEDY, draft="dspark"))
        stats, found = prompted.stats, prompted.stats.speculation
        assert stats.generated_tokens == 40 == 1 + found.accepted + len(found.cycles)
        assert 0 < found.accepted < found.drafted
        assert len(found.confidence_by_position) == 5 and all(0 < c < 1 for c in found.confidence_by_position)
        assert min(found.draft_ms.median, found.verify_ms.median, found.accept_ms.median) > 0
        spent = found.draft_ms.total + found.verify_ms.total + found.accept_ms.total
        assert 0.5 < spent / 1000 / stats.generate_seconds <= 1


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

    def propose(self, session: Session, request: Request, width: int) -> Draft:
        self._cycle += 1
        if self._cycle % 4 == 1:
            return DSparkDrafter().propose(session, request, width)
        block = self._tokens[session.position + 1 :][:5]
        return Draft.point_mass([t if self._rng.random() < 0.8 else (t + 1) % VOCAB for t in block])
