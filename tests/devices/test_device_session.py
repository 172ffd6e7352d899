"""A session that drafts and accepts by a device's own kernels, in the emulator: what it computes, and what it moves."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from device_sessions import DIALECTS, OWN, open_on_device, use
from drafting import WINDOW, draft, golden, log_softmax, open_session, prompt, relative_error, sampler
from generating import CONTINUATION, GREEDY, PROMPT, VOCAB, ids_of, oracle

import ds4py
from ds4py import Engine, Sampling, Session, _native
from ds4py.speculative import DSparkDrafter, accept

BOUND, CONFIDENCE_BOUND = 1e-4, 2e-4
CASES = [list(golden()["contexts"]).index(length) for length in (5, WINDOW + 1, 200)]
FLOAT, INT = 4, 4
SAMPLED = Sampling(temperature=0.8, seed=5)


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch, pair: Engine) -> Iterator[Session]:
    """A session that holds PROMPT, with the kernels of a device."""
    with open_on_device(monkeypatch, pair) as session:
        session.prefill(PROMPT)
        yield session


def choice_of(session: Session) -> dict[str, str]:
    """The implementation of each op, by the op's name."""
    return dict(line.split(": ") for line in session._live.kernel_choice().splitlines())


@pytest.mark.parametrize("ops", DIALECTS.values(), ids=DIALECTS)
class TestGoldenDrafts:
    @pytest.mark.parametrize("case", CASES)
    def test_likeliest(self, monkeypatch: pytest.MonkeyPatch, pair: Engine, ops: str, case: int) -> None:
        open_on_device(monkeypatch, pair, ops).close()
        found = draft(open_session(prompt(golden()["contexts"][case])), golden()["anchors"][case])
        assert relative_error(found.hidden, golden()["ring_hidden"][case]) <= BOUND
        assert relative_error(found.base, golden()["ring_base_logits"][case]) <= BOUND
        np.testing.assert_array_equal(found.tokens, golden()["ring_tokens"][case])
        np.testing.assert_allclose(found.confidence, golden()["ring_conf_prob"][case], atol=CONFIDENCE_BOUND)

    def test_drawn(self, monkeypatch: pytest.MonkeyPatch, pair: Engine, ops: str) -> None:
        """q is that of the golden logits as far as the golden tokens were drawn, which the first position always is."""
        open_on_device(monkeypatch, pair, ops).close()
        case, temperature, compared = CASES[1], 0.25, 0
        session = open_session(prompt(golden()["contexts"][case]))
        wanted = log_softmax(golden()["ring_biased_logits"][case] / temperature)
        for seed in range(3):
            found = draft(session, golden()["anchors"][case], sampler=sampler(temperature), rng=_native.Rng(seed))
            assert found.q is not None and found.ids is None
            rows = min(5, int(np.cumprod(found.tokens == golden()["ring_tokens"][case]).sum()) + 1)
            likely = wanted[:rows] > -20
            np.testing.assert_allclose(np.log(found.q[:rows][likely]), wanted[:rows][likely], atol=BOUND / temperature)
            np.testing.assert_allclose(found.q.sum(axis=1), 1, atol=1e-5)
            compared += rows
        assert compared > 3  # a proposal was the golden one, so that later rows were compared, too


def test_the_embedded_pair_drafts_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """Other sizes, and a larger vocabulary."""
    tokens = [*range(300, 340)]
    with Engine(device="cpu") as engine, engine.session(context=64, kv_dtype="f32") as plain:
        with open_on_device(monkeypatch, engine) as device:
            for session in (plain, device):
                session.prefill(tokens)
                session.anchor = 345
            found, wanted = device.draft(), plain.draft(draft_vocab=0)
        np.testing.assert_array_equal(found.tokens, wanted.tokens)
        np.testing.assert_allclose(found.confidence, wanted.confidence, atol=1e-5)


class TestGreedy:
    @pytest.mark.parametrize("ops", DIALECTS.values(), ids=DIALECTS)
    def test_text_is_that_of_plain_decoding(self, monkeypatch: pytest.MonkeyPatch, pair: Engine, ops: str) -> None:
        with open_on_device(monkeypatch, pair, ops) as session:
            pieces = list(session.generate(PROMPT, max_tokens=12, sampling=GREEDY, draft="dspark", draft_length=3))
            assert ids_of(pieces) == CONTINUATION[:12]
            assert session.stats.speculation.accepted > 0

    def test_proposals_of_others(self, device: Session) -> None:
        pieces = list(device.generate((), max_tokens=30, sampling=GREEDY, draft=oracle(3, 2), draft_length=5))
        assert ids_of(pieces) == CONTINUATION[:30]
        assert set(device.stats.speculation.accepted_histogram[4:]) <= {0}
        assert device.stats.speculation.accepted_histogram[3] > 3

    def test_whoever_wants_logits_gets_them(self, device: Session) -> None:
        pieces = list(device.generate((), max_tokens=8, sampling=GREEDY, draft=oracle(3), draft_length=3, logprobs=1))
        assert ids_of(pieces) == CONTINUATION[:8]
        found = [each for piece in pieces for each in piece.logprobs or ()]
        assert [each.top[0][0] for each in found] == CONTINUATION[:8]


class TestTraffic:
    def traffic(self, session: Session, cycles: int, **options: Any) -> tuple[float, float]:
        """Bytes to the host and to the device a cycle, once the graphs are there."""
        session.anchor = CONTINUATION[0]
        list(session.generate((), max_tokens=6, **options))
        before = session._live.diagnostics.traffic
        pieces = session.generate((), max_tokens=cycles * 6, **options)
        assert len(list(islice(pieces, cycles))) == cycles
        after = session._live.diagnostics.traffic
        to_host, to_device = ((getattr(after, key) - getattr(before, key)) / cycles for key in ("to_host", "to_device"))
        return to_host, to_device

    @pytest.mark.parametrize("sampling", [GREEDY, SAMPLED], ids=["greedy", "sampled"])
    def test_only_tokens_and_results_come_to_the_host(self, device: Session, sampling: Sampling) -> None:
        """Of a draft: five tokens, how sure it is, and what their logits sum to; of a verify: two integers."""
        to_host, to_device = self.traffic(device, 4, sampling=sampling, draft=DSparkDrafter(), draft_length=3)
        assert to_host == 5 * (INT + FLOAT + FLOAT) + 2 * INT
        assert to_device < VOCAB * FLOAT * 5  # less than a block's logits: positions, slots and masks

    def test_plain_steps_bring_the_result_alone(self, device: Session) -> None:
        assert self.traffic(device, 4, sampling=SAMPLED, draft="off")[0] == 2 * INT

    def test_other_policies_bring_rows(self, device: Session) -> None:
        options: dict[str, Any] = {"sampling": Sampling(top_k=3, seed=1), "draft": "off"}
        assert self.traffic(device, 4, **options)[0] == VOCAB * FLOAT
        options = {"sampling": SAMPLED, "draft": DSparkDrafter(), "draft_length": 3, "accept": "block"}
        assert self.traffic(device, 2, **options)[0] > 4 * VOCAB * FLOAT


class TestByHand:
    def test_q_is_brought_when_it_is_asked_for(self, device: Session) -> None:
        device.anchor = CONTINUATION[0]
        sampling, rng = Sampling(temperature=0.7), ds4py.Rng(3)
        first = device.draft(sampling, rng)
        read = device.draft(sampling, rng)
        assert rng.counter == 2  # a number a draft, and no draw of the host's is used again
        assert read.first(2).q_probs.shape == (2, VOCAB) and read.q_ids is None
        logits = device.verify(read.tokens[:3])
        assert accept(logits, read.first(3), sampling, rng)[0] <= 3
        with pytest.raises(ds4py.RequestError, match="not on the device any more"):
            assert first.q_probs.size
        device.draft()
        assert read.q_probs.shape == (5, VOCAB)

    def test_a_draft_vocabulary_is_drawn_from_as_elsewhere(self, device: Session) -> None:
        device.anchor = CONTINUATION[0]
        found = device.draft(SAMPLED, ds4py.Rng(3), draft_vocab=40)
        assert found.device_q is None and found.q_probs.shape == (5, 40)

    def test_what_does_not_fit(self, device: Session) -> None:
        device.anchor = CONTINUATION[0]
        rng = ds4py.Rng(1)
        older = device.draft(SAMPLED, rng)
        found = device.draft(SAMPLED, rng)
        with pytest.raises(ds4py.RequestError, match="nothing is verified"):
            device.accept(found, 0.8, rng)
        device.verify_on_device(found.tokens[:2])
        for draft_, temperature in ((older, 0.8), (found, 0.7)):
            with pytest.raises(ds4py.RequestError, match="not drawn in draft"):
                device.accept(draft_, temperature, rng)
        device.verify_on_device([(token + 1) % VOCAB for token in found.tokens])
        with pytest.raises(ds4py.RequestError, match="not drawn in draft"):
            device.accept(found, 0.8, rng)

    def test_without_kernels(self, monkeypatch: pytest.MonkeyPatch, pair: Engine) -> None:
        use(monkeypatch, "generic")
        with pair.session(context=64) as session:
            assert session.ops()["draft attention"] == "own (CPU)" and session.ops()["acceptance"] == "host"
            session.anchor = 1
            assert not session.accepts_on_device
            with pytest.raises(ds4py.RequestError, match="no kernels that accept proposals"):
                session.verify_on_device([2])

    def test_the_choice_of_every_op(self, monkeypatch: pytest.MonkeyPatch, pair: Engine, device: Session) -> None:
        """The device's kernels compute what they have kernels for, the CPU's all else but acceptance."""
        device_ops = {"draft_attention", "markov_head", "acceptance"}
        own = f"own ({_native.cpu_kernels()[0]})"
        found = choice_of(device)
        assert len(found) == 11 and device_ops < set(found)
        assert found == {op: "own (emulated)" if op in device_ops else own for op in found}
        use(monkeypatch, "generic")
        with pair.session(context=64) as session:
            assert choice_of(session) == {op: "host" if op == "acceptance" else own for op in found}

    def test_an_unknown_choice_is_refused(self, monkeypatch: pytest.MonkeyPatch, pair: Engine) -> None:
        use(monkeypatch, "emulted")
        with pytest.raises(ds4py.RequestError, match="DS4_OPS is 'emulted', wanted generic, emulated"):
            pair.session(context=64)

    def test_nodes_are_timed_as_ever(self, device: Session) -> None:
        assert device.ops() == OWN
        device.anchor = CONTINUATION[0]
        device.draft()
        assert len(device._live.diagnostics.node_times(np.array([1, 2], np.int32))) > 50


class TestState:
    def plain(self, engine: Engine, tokens: list[int]) -> np.ndarray:
        """The logits after these tokens, by a session without kernels of a device."""
        with engine.session(context=512, kv_dtype="f32") as session:
            session.prefill(tokens)
            return session.logits()

    def judged(self, session: Session) -> list[int]:
        """Commits a cycle of which two proposals stand; the ids in the state then."""
        session.anchor = CONTINUATION[0]
        wrong = (CONTINUATION[3] + 1) % VOCAB
        proposals = ds4py.speculative.Draft.point_mass([*CONTINUATION[1:3], wrong])
        session.verify_on_device(proposals.tokens)
        assert session.accept(proposals, 0, ds4py.Rng(1)) == (2, CONTINUATION[3])
        session.commit(2, None)
        return PROMPT + CONTINUATION[:3]

    def test_logits_are_those_of_the_last_row(self, device: Session, pair: Engine) -> None:
        tokens = self.judged(device)
        before = device._live.diagnostics.traffic.to_host
        np.testing.assert_array_equal(device.logits(), self.plain(pair, tokens))
        assert device._live.diagnostics.traffic.to_host - before == VOCAB * FLOAT
        device.prefill([7])
        np.testing.assert_array_equal(device.logits(), self.plain(pair, [*tokens, 7]))

    def test_a_verify_leaves_them(self, device: Session, pair: Engine) -> None:
        tokens = self.judged(device)
        device.anchor = CONTINUATION[3]
        device.verify_on_device([1, 2])
        device.anchor = None
        np.testing.assert_array_equal(device.logits(), self.plain(pair, tokens))

    def test_rewinding_drops_them(self, device: Session, pair: Engine) -> None:
        tokens = self.judged(device)
        device.rewind(len(tokens) - 1)
        np.testing.assert_array_equal(device.logits(), self.plain(pair, tokens[:-1]))
        device.prefill([9])
        device.rewind(len(tokens) - 1)
        device.prefill([tokens[-1]])
        np.testing.assert_array_equal(device.logits(), self.plain(pair, tokens))

    def test_saving_brings_them(self, device: Session, pair: Engine, tmp_path: Path) -> None:
        tokens = self.judged(device)
        device.save(tmp_path / "state")
        with pair.load_session(tmp_path / "state") as loaded:
            assert loaded.tokens == tokens
            np.testing.assert_array_equal(loaded.logits(), self.plain(pair, tokens))

    @pytest.mark.parametrize("step", ["draft", "verify", "accept"])
    def test_a_cancel_leaves_the_state(self, device: Session, step: str) -> None:
        device.anchor = CONTINUATION[0]
        found = device.draft()
        device.verify_on_device(found.tokens)
        calls = {
            "draft": device.draft,
            "verify": lambda: device.verify_on_device(found.tokens),
            "accept": lambda: device.accept(found, 0, ds4py.Rng(1)),
        }
        device.cancel()
        with pytest.raises(ds4py.Cancelled):
            calls[step]()
        assert (device.tokens, device.anchor) == (PROMPT, CONTINUATION[0])
        pieces = list(device.generate((), max_tokens=7, sampling=GREEDY, draft="dspark", draft_length=3))
        assert ids_of(pieces) == CONTINUATION[1:8]
