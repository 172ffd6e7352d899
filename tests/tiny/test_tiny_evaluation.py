"""The evaluation of a pair: its statistics by hand, its texts and losses against the session, its files and tables."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ds4py import Engine, FormatError, RequestError, Sampling, Session, data
from ds4py.speculative import Cycle, DraftRequest, PromptLookupDrafter, ScriptedDrafter
from tiny.config import BOS, DOMAINS, EOS
from tiny.evaluation import Evaluation, Lengths, compare, comparison_table, evaluate, heldout, sample_texts, tables
from tiny.evaluation import statistics as stats
from tiny.evaluation.comparison import Comparison, Difference
from tiny.evaluation.generation import generate, seed_of, texts
from tiny.evaluation.loss import characters, held_out_loss
from tiny.evaluation.proposers import PROPOSERS, LookupFirst, recurs
from tiny.evaluation.statistics import Judged
from tiny.evaluation.tables import fenced, markdown

pytestmark = pytest.mark.fast

GREEDY = Sampling(temperature=0)
EOS_NOW = Sampling(temperature=0, logit_bias={1: 1e4})
PROMPT = [0, 20, 31, 42, 53, 64]
LENGTHS = Lengths(prompt=6, generated=8, window=12, windows=2)


@pytest.fixture(scope="module")
def session() -> Iterator[Session]:
    """Of the embedded pair."""
    with Engine(device="cpu", threads=1) as engine, engine.session(context=64) as session:
        yield session


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A work folder with random held-out text in pieces of 50 tokens."""
    folder = tmp_path_factory.mktemp("work")
    (folder / "data").mkdir()
    rng = np.random.default_rng(3)
    for domain in DOMAINS:
        stream = rng.integers(2, 500, 400)
        stream[::50], stream[49::50] = BOS, EOS
        stream.astype("<u2").tofile(folder / "data" / f"heldout_{domain}.bin")
    return folder


def run(work: Path, **options: Any) -> Evaluation:
    return evaluate(work, data.TARGET, data.DRAFTER, 1, lengths=LENGTHS, **options)


@pytest.fixture(scope="module")
def evaluation(work: Path) -> Evaluation:
    return run(work)


def cycle(width: int, accepted: int, *confidence: float) -> Cycle:
    return Cycle(width, accepted, 0, 0, 0, confidence)


def plain(session: Session, count: int) -> list[int]:
    """What the target alone says greedily after PROMPT."""
    session.rewind(0)
    pieces = session.generate(PROMPT, max_tokens=count, sampling=GREEDY, draft="off")
    return [token for piece in pieces for token in piece.tokens]


def anchored(session: Session, prompt: list[int]) -> Session:
    """The session with the prompt, its last token as anchor."""
    session.rewind(0)
    session.prefill(prompt[:-1])
    session.anchor = prompt[-1]
    return session


CYCLES = [cycle(5, 2), cycle(5, 0), cycle(5, 5), cycle(0, 0), cycle(2, 2)]


def test_conditional_acceptance() -> None:
    """The first position is judged 4 times and accepted 3 times; the third is not proposed by the last cycle."""
    assert stats.conditional(CYCLES, 5) == (3 / 4, 1, 1 / 2, 1, 1)
    assert stats.conditional([cycle(5, 0)], 2) == (0, None)


def test_reach_sums_to_what_is_accepted() -> None:
    assert stats.reach(CYCLES, 5) == (3 / 5, 3 / 5, 1 / 5, 1 / 5, 1 / 5)
    assert 1 + sum(stats.reach(CYCLES, 5)) == pytest.approx(stats.per_cycle([CYCLES], 0).value)


def test_the_bootstrap_draws_prompts() -> None:
    """Prompts of 2 and of 4 tokens a cycle: draws of two have means 2, 3, 3 and 4, whose deviation is sqrt(1/2)."""
    found = stats.per_cycle([[cycle(5, 1)] * 10, [cycle(5, 3)] * 10], 0)
    assert (found.value, found.low, found.high) == (3, 2, 4)
    assert found.error == pytest.approx(0.5**0.5, abs=0.03)


def test_the_bootstrap_weighs_prompts_by_their_cycles() -> None:
    assert stats.per_cycle([[cycle(5, 1)] * 3, [cycle(5, 5)]], 0).value == pytest.approx((3 * 2 + 6) / 4)
    alike = stats.per_cycle([[cycle(5, 1)] * 3, [cycle(5, 1)]], 0)
    assert (alike.value, alike.error, alike.low, alike.high) == (2, 0, 2, 2)


def test_distinct_4_grams() -> None:
    """Two 4-grams of the first text differ, of three; the second's is new to it, though the first has it."""
    assert stats.distinct([[1, 1, 1, 1, 1, 2], [1, 1, 1, 1]]) == 3 / 4
    assert stats.distinct([[1, 2, 3], []]) is None


def test_judged_proposals_end_with_the_rejected_one() -> None:
    cycles = [cycle(3, 1, 0.9, 0.8, 0.7), cycle(2, 2, 0.6, 0.5), cycle(5, 3), cycle(0, 0)]
    found = stats.judged(cycles)
    assert found.confidence.tolist() == [0.9, 0.8, 0.6, 0.5]
    assert found.accepted.tolist() == [True, False, True, True]


def proposals(*pairs: tuple[float, bool]) -> Judged:
    return Judged(np.array([c for c, _ in pairs]), np.array([a for _, a in pairs], dtype=bool))


def test_calibration_error() -> None:
    """Three bins: {0.02, 0.08} with nothing accepted, {0.55} accepted, {0.96, 1.0} half accepted."""
    bins = stats.bins(proposals((0.02, False), (0.55, True), (1.0, True), (0.08, False), (0.96, False)))
    assert [(each.count, each.accepted) for each in bins] == [(2, 0), (1, 1), (2, 0.5)]
    assert [each.confidence for each in bins] == pytest.approx([0.05, 0.55, 0.98])
    assert stats.calibration_error(bins) == pytest.approx((2 * 0.05 + 0.45 + 2 * 0.48) / 5)


def test_auc() -> None:
    """Of six pairs of an accepted and a rejected one, four are in order and one is a tie."""
    found = proposals((0.9, True), (0.5, True), (0.3, True), (0.5, False), (0.1, False))
    assert stats.auc(found) == pytest.approx(4.5 / 6)


def test_nothing_judged() -> None:
    nothing = stats.judged([])
    assert (stats.bins(nothing), stats.calibration_error(()), stats.auc(nothing)) == ((), None, None)
    assert stats.auc(proposals((0.5, True))) is None


def test_prompts_begin_with_pieces() -> None:
    """Pieces begin at 0, 6, 10 and 16; that at 6 is too short, and two are spread over the others."""
    stream = np.array([0, 2, 3, 4, 5, 1, 0, 2, 3, 1, 0, 2, 3, 4, 5, 1, 0, 6, 7, 8, 9])
    assert heldout.prompts(stream, "code", 3, 5) == [[0, 2, 3, 4, 5], [0, 2, 3, 4, 5], [0, 6, 7, 8, 9]]
    assert heldout.prompts(stream, "code", 2, 5) == [[0, 2, 3, 4, 5], [0, 6, 7, 8, 9]]


def test_prompts_inside_pieces() -> None:
    """Where too few pieces are long enough; none crosses from one piece to the next."""
    stream = np.array([0, 2, 3, 4, 5, 1, 0, 6, 7, 8])
    assert heldout.prompts(stream, "code", 4, 3) == [[0, 2, 3], [2, 3, 4], [0, 6, 7], [6, 7, 8]]
    with pytest.raises(FormatError, match=r"'code' has 5 places .* 3 tokens, wanted 6"):
        heldout.prompts(stream, "code", 6, 3)


def test_windows_predict_no_token_twice() -> None:
    found = heldout.windows(np.arange(14), "docs", 9, 4)
    assert [each.tolist() for each in found] == [[0, 1, 2, 3, 4], [4, 5, 6, 7, 8], [8, 9, 10, 11, 12]]
    assert [each[0] for each in heldout.windows(np.arange(14), "docs", 2, 4)] == [0, 8]
    with pytest.raises(FormatError, match=r"'docs' has 4 tokens, wanted 5"):
        heldout.windows(np.arange(4), "docs", 2, 4)


def test_a_missing_held_out_file_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match=r"heldout_code\.bin: not there; .* build the corpus"):
        run(tmp_path)


def test_held_out_files_that_do_not_fit(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    path = tmp_path / "data" / "heldout_json.bin"
    path.write_bytes(b"\x00\x02\x03")
    with pytest.raises(FormatError, match="3 bytes are no whole number"):
        heldout.read(tmp_path, "json", 512)
    path.write_bytes(b"\x00\x02\x01\x00")
    assert heldout.read(tmp_path, "json", 513).tolist() == [512, 1]
    with pytest.raises(FormatError, match="token 512, but the target has 512"):
        heldout.read(tmp_path, "json", 512)


def test_scripted_cycles(session: Session) -> None:
    """A script that is right twice and then wrong: three tokens a cycle, and the target's own text."""
    wanted = plain(session, 9)
    wrong = next(token for token in range(2, 500) if token not in wanted)

    def script(history: np.ndarray) -> list[int]:
        done = len(history) - len(PROMPT)
        return [*wanted[done : done + 2], wrong, wrong, wrong]

    anchored(session, PROMPT)
    tokens, cycles = generate(session, PROMPT[-1], ScriptedDrafter(script), GREEDY, 9)
    assert list(tokens) == wanted
    assert [(each.width, each.accepted) for each in cycles] == [(5, 2)] * 3
    assert stats.conditional(cycles, 5) == (1, 1, 0, None, None)


def test_the_last_cycle_is_whole(session: Session) -> None:
    """Its proposals are verified although the text is long enough before them; what is beyond is no part of it."""
    wanted = plain(session, 6)
    anchored(session, PROMPT)
    tokens, cycles = generate(session, PROMPT[-1], ScriptedDrafter(lambda _: wanted[:5]), GREEDY, 4)
    assert list(tokens) == wanted[:4]
    assert [(each.width, each.accepted) for each in cycles] == [(5, 5)]


def test_a_text_ends_by_itself(session: Session) -> None:
    anchored(session, PROMPT)
    tokens, cycles = generate(session, PROMPT[-1], PromptLookupDrafter(), EOS_NOW, 20)
    assert (tokens, len(cycles)) == ((), 1)


def test_greedy_texts_are_the_targets_whoever_proposes(session: Session) -> None:
    wanted = plain(session, 12)
    steps: list[None] = []
    found = list(texts(session, "prose", [PROMPT], 12, 0, lambda: steps.append(None)))
    assert [list(each.tokens) for each in found if each.temperature == 0] == [wanted] * 3
    assert [each.proposer for each in found[:3]] == list(PROPOSERS)
    assert len(found) == len(steps) == 9


def test_every_text_has_a_seed_of_its_own() -> None:
    places = [(d, n, t, p) for d in DOMAINS for n in range(3) for t in (0.0, 0.7, 1.0) for p in PROPOSERS]
    assert len({seed_of(seed, *place) for seed in (0, 1) for place in places}) == 2 * len(places)


@pytest.mark.parametrize(
    ("tokens", "found"),
    [([7, 8, 9, 5, 7, 8, 9], True), ([7, 8, 9, 5, 8, 9], False), ([4, 4, 4, 4], True), ([4, 4, 4], False), ([], False)],
)
def test_recurring_tokens(tokens: list[int], found: bool) -> None:
    assert recurs(np.array(tokens, np.int32), 3) is found


def test_lookup_comes_first_where_the_text_repeats(session: Session) -> None:
    """What followed the same four tokens before; three of them are not enough, and the drafter is asked."""
    request = DraftRequest.of(GREEDY)
    repeated = LookupFirst().propose(anchored(session, [7, 20, 30, 40, 9, 8, 7, 20, 30, 40]), request, 5)
    assert repeated is not None and repeated.tokens.tolist() == [9, 8, 7, 20, 30]
    drafted = LookupFirst().propose(anchored(session, [7, 20, 30, 40, 9, 8, 6, 20, 30, 40]), request, 5)
    assert drafted is not None and drafted.confidence is not None
    assert drafted.tokens.tolist() == session.draft().tokens.tolist()


def test_characters_add_up_where_tokens_cut_them(session: Session) -> None:
    text = "if é → 漢字:\n\t🙂"
    ids = session.tokenizer.encode(text, add_bos=False)
    assert len(ids) > len(text)
    lengths = characters(session.tokenizer)
    assert lengths[ids].sum() == len(text)
    assert lengths[[BOS, EOS]].tolist() == [0, 0]


def test_loss_is_that_of_one_token_at_a_time(session: Session) -> None:
    window = np.array([0, 20, 31, 42, 53, 64, 75], np.int32)
    session.rewind(0)
    nats, right = 0.0, 0
    for token, following in pairwise(window):
        session.prefill([token])
        logits = np.float64(session.logits())
        nats += float(np.log(np.exp(logits - logits[following]).sum()))
        right += int(logits.argmax() == following)
    found = held_out_loss(session, "code", [window, window], np.full(512, 3), lambda: None)
    assert (found.domain, found.tokens, found.characters, found.top1) == ("code", 12, 36, right / 6)
    assert found.nats_per_token == pytest.approx(nats / 6, rel=1e-3)
    assert found.bits_per_character == pytest.approx(2 * nats / np.log(2) / 36, rel=1e-3)


def test_the_same_files_and_seed_give_the_same_numbers(work: Path, evaluation: Evaluation) -> None:
    steps: list[tuple[int, int]] = []
    assert run(work, progress=lambda done, total: steps.append((done, total))) == evaluation
    assert steps == [(done, 55) for done in range(1, 56)]  # of each domain 2 windows, and 9 texts of a prompt


def test_everything_is_reported(evaluation: Evaluation) -> None:
    kinds = [(each.proposer, each.temperature, each.domain) for each in evaluation.acceptance]
    assert kinds == [(p, t, d) for p in ("dspark", "lookup", "both") for t in (0, 0.7, 1) for d in DOMAINS]
    assert [each.domain for each in evaluation.losses] == list(DOMAINS)
    pooled = [each for each in evaluation.calibration if each.domain == "all"]
    for whole in pooled:
        parts = [each for each in evaluation.calibration if each.temperature == whole.temperature and each != whole]
        assert whole.proposals == sum(each.proposals for each in parts) > 0
    assert [each.temperature for each in pooled] == [0, 0.7, 1]
    assert [(each.domain, each.temperature) for each in evaluation.samples] == [
        (d, t) for d in DOMAINS for t in (0, 0.7)
    ]
    assert all(each.prompt and each.text for each in evaluation.samples)


def test_the_file_is_the_evaluation(work: Path, evaluation: Evaluation, tmp_path: Path) -> None:
    found = Evaluation.read(work / "evaluation.json")
    assert found == evaluation
    copy = tmp_path / "copy.json"
    found.write(copy)
    assert copy.read_bytes() == (work / "evaluation.json").read_bytes()


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"setup": 3}'])
def test_a_damaged_file_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "evaluation.json"
    path.write_text(text)
    with pytest.raises(FormatError, match=r"evaluation\.json: no evaluation"):
        Evaluation.read(path)


def test_tables_hold_the_numbers(evaluation: Evaluation) -> None:
    found = tables(evaluation)
    first = evaluation.acceptance[0]
    assert f"| code | 0 | {first.per_cycle.value:.2f} ± {first.per_cycle.error:.2f} |" in found
    assert f"| prose | 24 | {evaluation.losses[-1].nats_per_token:.3f} |" in found
    pooled = evaluation.calibration[-6]
    assert f"| all | 1 | {pooled.proposals} | {pooled.error:.3f} |" in found
    blocks = [block.splitlines() for block in found.split("\n\n") if block.startswith("|")]
    assert [len(block) - 2 for block in blocks] == [5, 15, 15, 15, 15, 18]
    assert all(line.count("|") == block[0].count("|") for block in blocks for line in block)
    assert found.count("###") == len(blocks)


def test_markdown() -> None:
    assert markdown(("a", "b"), [("x", "1")]) == "| a | b |\n| :-- | --: |\n| x | 1 |"


def test_samples_stay_in_their_blocks(evaluation: Evaluation) -> None:
    assert evaluation.samples[0].text in sample_texts(evaluation)
    assert fenced("a ``` b ```` c") == "`````text\na ``` b ```` c\n`````"


def with_cycles(evaluation: Evaluation, value: float, error: float) -> Evaluation:
    """The evaluation with other tokens per cycle of the drafter on prose at temperature 1."""
    place = next(i for i, x in enumerate(evaluation.acceptance) if (x.temperature, x.domain) == (1, "prose"))
    estimate = replace(evaluation.acceptance[place].per_cycle, value=value, error=error)
    changed = replace(evaluation.acceptance[place], per_cycle=estimate)
    rest = evaluation.acceptance
    return replace(evaluation, acceptance=(*rest[:place], changed, *rest[place + 1 :]))


def test_comparison(evaluation: Evaluation) -> None:
    first, second = with_cycles(evaluation, 2.0, 0.06), with_cycles(evaluation, 1.5, 0.06)
    found = compare(first, second)
    assert len(found.differences) == 15
    assert (found.largest.domain, found.largest.temperature, found.largest.relative) == ("prose", 1, -0.25)
    assert found.largest.error == pytest.approx(0.75 * (0.03**2 + 0.04**2) ** 0.5)
    assert sum(each.relative != 0 for each in found.differences) == 1


def test_a_comparison_wants_the_same_setup(evaluation: Evaluation) -> None:
    other = replace(evaluation, setup=replace(evaluation.setup, prompts=2))
    with pytest.raises(RequestError, match=r"prompts=1.*prompts=2"):
        compare(evaluation, other)
    with pytest.raises(RequestError, match="no proposer 'nobody', wanted one of both, dspark, lookup"):
        compare(evaluation, evaluation, "nobody")


def test_the_table_of_a_comparison() -> None:
    found = comparison_table(Comparison((Difference("dspark", 0.7, "json", 2.0, 1.5, -0.25, 0.0375),)))
    assert found.splitlines()[-1] == "| json | 0.7 | 2.00 | 1.50 | -25.0 % ± 3.8 % |"


@pytest.mark.parametrize(
    ("prompts", "lengths", "name"), [(0, LENGTHS, "prompts"), (1, Lengths(window=0), "lengths.window")]
)
def test_nothing_to_evaluate(work: Path, prompts: int, lengths: Lengths, name: str) -> None:
    with pytest.raises(RequestError, match=f"{name} is 0, wanted 1 or more"):
        evaluate(work, data.TARGET, data.DRAFTER, prompts, lengths=lengths)
