"""llama.cpp drafts the same tokens with the same two files; skipped where llama-cpp-python is not installed.

llama_drafts.py makes it draft. Its blocks are ours as long as context and block fit into a window together. Past that
its rows see less of the context (golden/README.md); they are ours once it is made to show them DeepSeek's window.

In F32 every token has to be the same, but after ties of the indexer, whose scores are often exactly 0. With quantised
weights activations are quantised as well, and a product summed in another order may send a token to other experts: our
own blocks with ggml's products differ after a prompt in one piece and after one token by token about as often as they
do from llama.cpp's. Seen with llama-cpp-python 0.3.36.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import llama
import numpy as np
import pytest
from converting import metadata
from drafting import golden
from gguf_tools import DRAFTER, TARGET, in_f32
from paths import ROOT

import ds4py
from ds4py import Sampling, data

pytestmark = llama.installed

PROGRAM = ROOT / "tests" / "helpers" / "llama_drafts.py"
SHARE = 0.9  # of the tokens that are the same with quantised weights
CONTINUED = 32  # tokens after each of the texts
TEXTS = {
    "code": "def total(rows):\n    result = 0\n    for row in rows:\n        result += row",
    "json": '{"name": "pump", "sizes": [10, 20, 30], "ready": true, "parent": {"name": ',
    "tables": "| city | people |\n|---|---|\n| Oslo | 709037 |\n| Bergen | 291940 |\n",
    "docs": "Returns the number of bytes that were read, or -1 at the end of the file.",
    "prose": "It was late in the evening when the old man came down to the river again, and",
}
TEXTS["all"] = "\n".join(TEXTS.values())

Drafts = dict[str, np.ndarray]
"""By sequence: the block at every position but the first, [positions, block] of (token, confidence)."""


@dataclass(frozen=True)
class Pair:
    """Two files, and what is drafted with them along sequences of tokens; `folder` is for exchange with llama.cpp."""

    target: Path
    drafter: Path
    sequences: dict[str, np.ndarray]
    folder: Path

    @cached_property
    def window(self) -> int:
        return int(metadata(self.drafter)["dflash.attention.sliding_window"])

    @cached_property
    def ours(self) -> Drafts:
        with ds4py.Engine(self.target, drafter=self.drafter, device="cpu", threads=1) as engine:
            return {name: drafts(engine, tokens) for name, tokens in self.sequences.items()}

    @cached_property
    def llama(self) -> Drafts:
        return self._llama()

    @cached_property
    def llama_with_ring(self) -> Drafts:
        """Every row sees the last window of positions before the block."""
        return self._llama(self.window)

    def _llama(self, *ring: int) -> Drafts:
        given, found = self.folder / "given.npz", self.folder / "found.npz"
        np.savez(given, **self.sequences)
        llama.run(PROGRAM, self.target, self.drafter, given, found, *ring)
        with np.load(found) as file:
            return dict(file)


def drafts(engine: ds4py.Engine, tokens: np.ndarray) -> np.ndarray:
    """Ours, with every token for the anchor of those before it."""
    blocks = []
    with engine.session(context=1024, kv_dtype="f32") as session:
        session.prefill(tokens[:1])
        for anchor in tokens[1:]:
            session.anchor = int(anchor)
            block = session.draft()
            blocks.append(list(zip(block.tokens, block.confidence, strict=True)))
            session.prefill(())
    return np.array(blocks, [("token", "i4"), ("confidence", "f4")])


def texts(target: Path) -> dict[str, np.ndarray]:
    """The texts, each with what the target continues it by at temperature 0."""
    found = {}
    with ds4py.Engine(target, device="cpu", threads=1) as engine:
        for name, text in TEXTS.items():
            with engine.session(context=1024, kv_dtype="f32") as session:
                list(session.generate(text, max_tokens=CONTINUED, sampling=Sampling(temperature=0)))
                found[name] = session.history()
    return found


@pytest.fixture(scope="module")
def random_pair(tmp_path_factory: pytest.TempPathFactory) -> Pair:
    """The golden pair, along the tokens of the golden rounds."""
    return Pair(TARGET, DRAFTER, {"rounds": golden()["rounds_sequence"]}, tmp_path_factory.mktemp("random"))


@pytest.fixture(scope="module")
def shipped(tmp_path_factory: pytest.TempPathFactory) -> Pair:
    """The files in the package, as they are."""
    return Pair(data.TARGET, data.DRAFTER, texts(data.TARGET), tmp_path_factory.mktemp("shipped"))


@pytest.fixture(scope="module")
def widened(shipped: Pair, tmp_path_factory: pytest.TempPathFactory) -> Pair:
    """The same weights in F32."""
    folder = tmp_path_factory.mktemp("widened")
    target, drafter = (in_f32(path, folder / path.name) for path in (shipped.target, shipped.drafter))
    return Pair(target, drafter, shipped.sequences, folder)


@pytest.fixture(params=["random_pair", "widened"])
def pair(request: pytest.FixtureRequest) -> Pair:
    """One in F32."""
    found: Pair = request.getfixturevalue(request.param)
    return found


def blocks(pair: Pair, theirs: Drafts, *, past: bool) -> tuple[np.ndarray, np.ndarray]:
    """Ours and theirs of all sequences, where the context with the block is past the window, or where it is not."""
    mine, its = [], []
    for name, found in pair.ours.items():
        positions = np.arange(1, len(found) + 1)
        rows = (positions + found.shape[1] > pair.window) == past
        mine.append(found[rows])
        its.append(theirs[name][rows])
    return np.concatenate(mine), np.concatenate(its)


def same(mine: np.ndarray, its: np.ndarray) -> np.ndarray:
    """Which tokens are the same, and all before them in their block: [blocks, block]."""
    assert mine.shape == its.shape and len(mine) > 20
    return np.logical_and.accumulate(mine["token"] == its["token"], axis=1)


def assert_same(mine: np.ndarray, its: np.ndarray) -> None:
    """But for a few blocks: of index scores that are exactly 0, llama.cpp keeps others than we, who keep the first."""
    equal = same(mine, its)
    assert equal.all(axis=1).mean() > 0.99, (mine["token"][~equal.all(axis=1)], its["token"][~equal.all(axis=1)])
    apart = np.abs(mine["confidence"][equal] - its["confidence"][equal])
    assert (apart < 1e-4).mean() > 0.9


def test_the_program_drafts_as_llama_server(random_pair: Pair) -> None:
    """Whose drafts in the golden rounds are known (golden/README.md)."""
    wanted = golden()["rounds_swa"]
    found = random_pair.llama["rounds"][wanted[:, 0] - 1]
    np.testing.assert_array_equal(found["token"], wanted[:, 2:-1])


def test_blocks_within_a_window(pair: Pair) -> None:
    assert_same(*blocks(pair, pair.llama, past=False))


def test_blocks_past_the_window(pair: Pair) -> None:
    assert_same(*blocks(pair, pair.llama_with_ring, past=True))


def test_rows_of_llama_see_less_past_the_window(random_pair: Pair) -> None:
    """Two of three blocks are the same nevertheless."""
    equal = same(*blocks(random_pair, random_pair.llama, past=True)).all(axis=1)
    assert 0.5 < equal.mean() < 0.8


def test_the_files_as_they_are_shipped(shipped: Pair) -> None:
    mine, its = blocks(shipped, shipped.llama, past=False)
    assert (mine["token"] == its["token"]).mean() > SHARE
