"""Drafters that load can draft: in every contract, with heads of every type, without the heads that may be missing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest
import synthetic
from device import DEVICE
from drafter_files import CONFIDENCE, CONTRACTS, HIDDEN, DrafterFile, tiny_target, u32
from gguf import GGMLQuantizationType as Type
from gguf_tools import TARGET
from paths import GOLDEN

from ds4py import _native

pytestmark = pytest.mark.on_device

TYPES = [Type.F16, Type.BF16, Type.Q8_0, Type.Q4_0, Type.MXFP4, Type.Q2_K, Type.Q4_K, Type.Q6_K, Type.IQ4_XS]
FRONTIER = 200
WANTED = np.load(GOLDEN / "drafter-golden.npz")
ROW = list(WANTED["contexts"]).index(FRONTIER)
PROMPT = np.load(GOLDEN / "target-golden.npz")["tokens"][:FRONTIER].astype(np.int32)


def draft(drafter: _native.Drafter, draft_vocab: int = 0, target: _native.Model | None = None) -> dict[str, Any]:
    """What the drafter proposes after the golden prompt, with the base logits."""
    session = _native.Session(target or tiny_target(), context=256, kv_dtype="f32", drafter=drafter)
    session.prefill(PROMPT)
    block = session.draft(int(WANTED["anchors"][ROW]), draft_vocab=draft_vocab)
    return {"tokens": block.tokens, "confidence": block.confidence, "base": session.diagnostics.draft_trace().base}


def logit(probability: np.ndarray) -> np.ndarray:
    return np.log(probability / (1 - probability))


@pytest.mark.parametrize("contract", CONTRACTS)
def test_every_contract_drafts_the_golden_block(tmp_path: Path, contract: str) -> None:
    found = draft(DrafterFile(contract).load(tmp_path))
    assert found["tokens"].tolist() == WANTED["ring_tokens"][ROW].tolist()
    assert np.abs(found["confidence"] - WANTED["ring_conf_prob"][ROW]).max() < 1e-5


@pytest.mark.parametrize("draft_vocab", [0, 40])
@pytest.mark.parametrize("kind", TYPES, ids=lambda kind: kind.name)
def test_quantised_heads_draft_as_their_values_in_f32(tmp_path: Path, kind: Type, draft_vocab: int) -> None:
    packed, plain = DrafterFile("ds4").with_heads(kind), DrafterFile("ds4").with_heads(kind)
    for name, stored in plain.kinds.items():
        plain.tensors[name] = values(plain.tensors[name], stored)
    plain.kinds.clear()
    found, wanted = draft(packed.load(tmp_path), draft_vocab), draft(plain.load(tmp_path), draft_vocab)
    assert found["tokens"].tolist() == wanted["tokens"].tolist()
    assert np.abs(found["confidence"] - wanted["confidence"]).max() < 1e-6


@pytest.mark.parametrize("draft_vocab", [1, 40, 300])
def test_a_draft_vocabulary_drafts_as_ggmls_operations_do(tmp_path: Path, draft_vocab: int) -> None:
    plain = _native.Model.load(str(TARGET), device=DEVICE, threads=1, repack=False)
    path = str(DrafterFile().write(tmp_path / "drafter.gguf"))
    found = draft(_native.Drafter.load(path, tiny_target()), draft_vocab)
    wanted = draft(_native.Drafter.load(path, plain), draft_vocab, plain)
    assert found["tokens"].tolist() == wanted["tokens"].tolist()
    assert np.abs(found["confidence"] - wanted["confidence"]).max() < 1e-5


def values(data: np.ndarray, kind: Type) -> np.ndarray:
    """What `data` is after quantising."""
    packed = synthetic.quantise(data, kind)
    return gguf.dequantize(packed.view(np.float16) if kind == Type.F16 else packed, kind).astype(np.float32)


def test_without_sequential_heads(tmp_path: Path) -> None:
    file = DrafterFile("ds4", keys={"dspark.markov_rank": u32(0)}).remove(r"markov.*", r"conf_proj\..*")
    found = draft(file.load(tmp_path))
    assert found["tokens"].tolist() == found["base"].argmax(axis=1).tolist()
    assert found["confidence"] is None


def test_a_confidence_head_that_reads_the_hidden_state_alone(tmp_path: Path) -> None:
    """As wide as the official one with zeros for the Markov row."""
    row = DrafterFile().tensors[CONFIDENCE].copy()
    row[:, HIDDEN:] = 0
    narrow, wide = (DrafterFile("ds4", tensors={CONFIDENCE: each}) for each in (row[:, :HIDDEN], row))
    found, wanted = draft(narrow.load(tmp_path)), draft(wide.load(tmp_path))
    assert np.abs(found["confidence"] - wanted["confidence"]).max() < 1e-6


def test_the_bias_of_the_confidence_head(tmp_path: Path) -> None:
    biased = DrafterFile("lucebox")
    biased.tensors["conf_proj.bias"] = np.array([0.5], np.float32)
    found, wanted = draft(biased.load(tmp_path)), draft(DrafterFile("lucebox").load(tmp_path))
    assert logit(found["confidence"]) - logit(wanted["confidence"]) == pytest.approx(0.5, abs=1e-4)
