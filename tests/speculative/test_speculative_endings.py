"""Where generations end, and what they leave in the state: the same with blocks as token by token."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from device import DEVICE
from generating import CONTINUATION, GREEDY, PROMPT, VOCAB, ids_of, oracle, text_of
from gguf_tools import DRAFTER, TARGET

import ds4py
from ds4py import Engine, Piece, Sampling, Session, _native
from ds4py.speculative import Draft, ScriptedDrafter, loop

LOGITS = 5e-5  # the same position among other rows


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


class TestEndings:
    """Every ending against plain decoding's, with blocks that go on behind it."""

    DRAFTS = ("off", oracle(5), oracle(2, 3))

    def same(self, prompted: Session, **request: object) -> Outcome:
        found = []
        for draft in self.DRAFTS:
            prompted.rewind(len(PROMPT))
            pieces = list(prompted.generate(sampling=GREEDY, draft=draft, width=15, **request))
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

    def test_nothing_is_asked_for_behind_an_anchor(self, prompted: Session) -> None:
        list(prompted.generate(max_tokens=3, sampling=GREEDY))
        assert list(prompted.generate(max_tokens=0)) == [Piece("", (), "length")]
        assert [*prompted.tokens, prompted.anchor] == PROMPT + CONTINUATION[:3]

    @pytest.mark.parametrize("room", range(9))
    def test_a_full_context(self, pair: Engine, room: int) -> None:
        with pair.session(context=len(PROMPT) + room) as session:
            for draft in ("off", "dspark", "lookup", oracle()):
                session.rewind(0)
                pieces = list(session.generate(PROMPT, sampling=GREEDY, draft=draft, width=15))
                assert (ids_of(pieces), pieces[-1].finish_reason) == (CONTINUATION[:room], "length")
                session.logits()
                assert session.tokens == PROMPT + CONTINUATION[:room]

    @pytest.mark.parametrize("taken", [1, 2, 3])
    def test_an_abandoned_iterator_keeps_what_it_gave(self, prompted: Session, taken: int) -> None:
        stream = prompted.generate(sampling=GREEDY, draft=oracle(), width=3)
        first = ids_of([next(stream) for _ in range(taken)])
        stream.close()
        assert [*prompted.tokens, prompted.anchor] == PROMPT + first
        rest = ids_of(list(prompted.generate(max_tokens=20, sampling=GREEDY, draft="dspark", width=15)))
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
            pieces = list(prompted.generate(max_tokens=40, sampling=policy, draft=repeat, width=15, accept="match"))
            assert text_of(pieces) == prompted.tokenizer.decode(ids_of(pieces))
            broken += any(text_of([piece]) != prompted.tokenizer.decode(piece.tokens) for piece in pieces)
        assert broken > 3


class TestInterruptions:
    def finish(self, session: Session, given: list[int]) -> None:
        """The state is as after the last piece: it goes on from there as if nothing had been."""
        assert session.history().tolist() == PROMPT + given
        rest = ids_of(list(session.generate(max_tokens=12, sampling=GREEDY, draft="dspark", width=15)))
        assert given + rest == CONTINUATION[: len(given) + 12]

    @pytest.mark.parametrize("draft", ["off", "dspark", "lookup"])
    def test_cancel_between_pieces(self, prompted: Session, draft: str) -> None:
        stream = prompted.generate(sampling=GREEDY, draft=draft, width=15)
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
                for piece in prompted.generate(sampling=GREEDY, draft=ScriptedDrafter(script), width=15)
                for token in piece.tokens
            )
        self.finish(prompted, CONTINUATION[:9])

    @pytest.mark.parametrize("error", [ZeroDivisionError, KeyboardInterrupt])
    def test_an_exception_in_a_drafter(self, prompted: Session, error: type[BaseException]) -> None:
        def script(history: np.ndarray) -> list[int]:
            if len(history) > len(PROMPT) + 1:
                raise error
            return CONTINUATION[1:4]

        stream = prompted.generate(sampling=GREEDY, draft=ScriptedDrafter(script), width=15)
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
        stream = prompted.generate(sampling=Sampling(seed=1), draft=ScriptedDrafter(lambda _: proposals), width=15)
        given = ids_of([next(stream)])
        with pytest.raises(ds4py.RequestError):
            next(stream)
        assert prompted.history().tolist() == PROMPT + given
        assert len(ids_of(list(prompted.generate(max_tokens=9, sampling=GREEDY)))) == 9

    @pytest.mark.parametrize("name", ["sample", "draft", "verify", "accept", "commit"])
    @pytest.mark.parametrize("count", range(3))
    def test_a_step_that_fails(self, prompted: Session, monkeypatch: pytest.MonkeyPatch, name: str, count: int) -> None:
        def step(*args: object, **kwargs: object) -> object:
            if next(left) == 0:
                raise ds4py.BackendError("the device is gone")
            return found(*args, **kwargs)

        where = loop if name == "accept" else Session
        left, found = iter(range(0 if name == "sample" else count, -1, -1)), getattr(where, name)
        given: list[int] = []
        with monkeypatch.context() as patch, pytest.raises(ds4py.BackendError, match="is gone"):
            patch.setattr(where, name, step)
            for piece in prompted.generate(sampling=GREEDY, draft="dspark", width=15):
                given += piece.tokens
        assert bool(given) == (name != "sample")
        self.finish(prompted, given)

    @pytest.mark.parametrize("name", ["sample", "draft", "verify", "commit", "prefill", "rewind"])
    def test_ctrl_c_right_after_a_native_call(self, prompted: Session, name: str) -> None:
        """The interpreter may raise KeyboardInterrupt before it stores what the call returned."""
        native = prompted._live
        for count in range(3):
            prompted.rewind(len(PROMPT))
            prompted._state = Interrupted(native, name, count)
            given: list[int] = []
            try:
                for piece in prompted.generate(max_tokens=9, sampling=GREEDY, draft="dspark", width=15):
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
            rest = ids_of(list(prompted.generate(max_tokens=12, sampling=GREEDY, draft="dspark", width=15)))
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


class TestSaving:
    @pytest.mark.parametrize("drafter", [DRAFTER, None])
    def test_in_the_middle_of_a_generation(self, prompted: Session, tmp_path: Path, drafter: Path | None) -> None:
        """The text goes on in both, also in a session that decodes plainly."""
        stream = prompted.generate(sampling=GREEDY, draft="dspark", width=15)
        given = ids_of([next(stream) for _ in range(5)])
        prompted.save(tmp_path / "state")
        rest = ids_of([next(stream) for _ in range(9)])
        assert given + rest == CONTINUATION[: len(given) + len(rest)]
        with (
            Engine(TARGET, drafter=drafter, device=DEVICE, threads=1) as engine,
            engine.load_session(tmp_path / "state") as session,
        ):
            assert session.tokens == PROMPT + given
            assert ids_of(list(session.generate(max_tokens=len(rest), sampling=GREEDY))) == rest
            assert session.stats.speculation.drafter == ("dspark+lookup" if drafter else "off")
