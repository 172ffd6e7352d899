"""Drafters of every shape against a slow float64 implementation, around the wraps of the window.

The prompt is the golden one, so that the features the reference reads are those of an independent target.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from device import DEVICE
from drafter_files import CONFIDENCE, HIDDEN, W1, W2, DrafterFile, array, u32
from drafting import (
    WINDOW,
    draft,
    golden,
    golden_drafter,
    load,
    log_softmax,
    open_session,
    prompt,
    relative_error,
    sampler,
)
from gguf import GGMLQuantizationType as Type
from gguf import GGUFValueType as V
from gguf_tools import DRAFTER, TARGET, edited
from reference_drafter import Block, Chain, ReferenceDrafter, target_ends
from saved_state import visible_state

from ds4py import _native

POSITIONS = (0, 1, 5, WINDOW - 1, WINDOW, WINDOW + 1, 3 * WINDOW + 7)
BOUND = 2e-5  # relative; of confidences absolute
NEAR_TIE = 20 * BOUND  # an error may decide a choice between scores so close
GOLDEN_TAPS = (3, 4, 5)


@dataclass(frozen=True)
class Variant:
    """A drafter derived from the golden one, and what the reference must be told of it."""

    file: DrafterFile
    options: dict[str, Any] = field(default_factory=dict)
    taps: Sequence[int] = GOLDEN_TAPS


def tensor(name: str) -> np.ndarray:
    return DrafterFile().tensors[name]


def with_keys(**keys: Any) -> DrafterFile:
    return DrafterFile(keys={f"dflash.{key}": value for key, value in keys.items()})


def with_stages(count: int) -> DrafterFile:
    return with_keys(block_count=u32(count)).remove(*(rf"blk\.{stage}\..*" for stage in range(count, 3)))


def without_markov() -> DrafterFile:
    """Only the ds4 contracts have a name for it: rank 0. The confidence head then reads the hidden row alone."""
    file = DrafterFile("relayout", {"deepseek4.dspark.markov_rank": u32(0)}, {CONFIDENCE: narrow_confidence()})
    return file.remove(W1, W2)


def narrow_confidence() -> np.ndarray:
    return np.ascontiguousarray(tensor(CONFIDENCE)[:, :HIDDEN])


def taps(*layers: int) -> DrafterFile:
    """Reads the output of `layers`, by as much of the fusion matrix as they need."""
    fusion = np.ascontiguousarray(tensor("fc.weight")[:, : HIDDEN * len(layers)])
    keys = {"dflash.target_layers": array([layer + 1 for layer in layers], V.INT32)}
    return DrafterFile(keys=keys, tensors={"fc.weight": fusion})


def reversed_fusion() -> np.ndarray:
    blocks = tensor("fc.weight").reshape(HIDDEN, len(GOLDEN_TAPS), HIDDEN)
    return np.ascontiguousarray(blocks[:, ::-1]).reshape(HIDDEN, -1)


VARIANTS = {
    "golden": Variant(DrafterFile()),
    "block 1": Variant(with_keys(block_size=u32(1)), {"block": 1}),
    "block 3": Variant(with_keys(block_size=u32(3)), {"block": 3}),
    "block 7": Variant(with_keys(block_size=u32(7)), {"block": 7}),
    "1 stage": Variant(with_stages(1)),
    "2 stages": Variant(with_stages(2)),
    "no confidence": Variant(DrafterFile().remove(CONFIDENCE)),
    "confidence of hidden": Variant(DrafterFile(tensors={CONFIDENCE: narrow_confidence()})),
    "confidence with bias": Variant(DrafterFile(tensors={"conf_proj.bias": np.full(1, 0.7, np.float32)})),
    "no markov": Variant(without_markov()),
    "anchor predicts nothing": Variant(
        with_keys(sample_from_anchor=(V.BOOL, False), block_size=u32(6)), {"from_anchor": False}
    ),
    "other noise": Variant(DrafterFile(keys={"tokenizer.ggml.mask_token_id": u32(7)}), {"noise": 7}),
    "taps one earlier": Variant(taps(2, 3, 4), taps=(2, 3, 4)),
    "taps apart": Variant(taps(0, 3, 5), taps=(0, 3, 5)),
    "two taps": Variant(taps(1, 5), taps=(1, 5)),
    "fusion reversed": Variant(DrafterFile(tensors={"fc.weight": reversed_fusion()})),
}


def features(layers: Sequence[int], length: int) -> np.ndarray:
    """Of the first positions of the prompt, from the golden target."""
    return np.concatenate([golden("target")["streams_mean"][layer, :length] for layer in layers], 1)


def with_clear_choices(reference: ReferenceDrafter, past: np.ndarray, position: int) -> tuple[int, Block, Chain]:
    """A draft of the reference whose experts and tokens are not near a tie, and the anchor it is of."""
    for anchor in map(int, prompt()[position:]):
        block = reference.stages_of(past, anchor, position)
        chain = reference.chain(block, anchor)
        best = np.sort(chain.logits, axis=1)
        if min(block.router_gap, (best[:, -1] - best[:, -2]).min()) > NEAR_TIE:
            return anchor, block, chain
    raise AssertionError("every anchor leads to a near tie")


@pytest.mark.parametrize("name", VARIANTS)
def test_drafts_agree_with_the_reference(name: str, tmp_path: Path) -> None:
    variant = VARIANTS[name]
    reference = ReferenceDrafter(variant.file.tensors, **variant.options)
    session = open_session(drafter=load(variant.file.write(tmp_path / "drafter.gguf")))
    for position in POSITIONS:
        if position:
            session.prefill(prompt(position)[session.position :])
        anchor, block, chain = with_clear_choices(reference, features(variant.taps, position), position)
        found = draft(session, anchor)
        assert relative_error(found.hidden, block.hidden) <= BOUND
        assert relative_error(found.base, block.base) <= BOUND
        np.testing.assert_array_equal(found.tokens, chain.tokens)
        assert (found.confidence is None) == (chain.confidence is None)
        if found.confidence is not None:
            np.testing.assert_allclose(found.confidence, chain.confidence, atol=BOUND)


MATTERS = ["block 3", "block 7", "1 stage", "2 stages", "anchor predicts nothing", "other noise"]
MATTERS += ["taps one earlier", "taps apart", "fusion reversed"]


@pytest.mark.parametrize("name", MATTERS)
def test_what_changes_every_row(name: str, tmp_path: Path) -> None:
    """The agreement above is not of something that the hidden rows do not depend on."""
    drafter = load(VARIANTS[name].file.write(tmp_path / "drafter.gguf"))
    changed, same = (draft(open_session(prompt(40), drafter=d), 5) for d in (drafter, golden_drafter()))
    rows = min(len(changed.hidden), len(same.hidden))
    assert np.abs(changed.hidden[:rows] - same.hidden[:rows]).max(1).min() > 1e-3


def compare(path: Path, reference: ReferenceDrafter) -> tuple[float, float, float]:
    """Errors of the hidden rows, of the logits with their bias (relative) and of the confidences (absolute)."""
    past, anchor = prompt(40), int(prompt()[40])
    found = draft(open_session(past, drafter=load(path)), anchor, sampler=sampler(), rng=_native.Rng(1))
    block = reference.stages_of(features(GOLDEN_TAPS, len(past)), anchor, len(past))
    chain = reference.chain(block, anchor, found.tokens)
    logits = relative_error(np.log(found.q), log_softmax(chain.logits))
    return relative_error(found.hidden, block.hidden), logits, float(np.abs(found.confidence - chain.confidence).max())


@pytest.mark.parametrize(
    ("kind", "rounded", "quantised"),
    [
        (Type.F16, BOUND, BOUND),
        (Type.BF16, BOUND, BOUND),
        (Type.Q8_0, 1e-3, 5e-3),
        (Type.Q6_K, 8e-3, 2e-2),
        (Type.Q4_K, 1e-2, 6e-2),
    ],
    ids=lambda value: value.name if isinstance(value, Type) else "",
)
def test_heads_of_any_type(kind: Type, rounded: float, quantised: float, tmp_path: Path) -> None:
    """They draft what their blocks stand for, up to what a product rounds, and that is close to what was quantised."""
    path = DrafterFile().with_heads(kind).write(tmp_path / "drafter.gguf")
    hidden, logits, confidence = compare(path, ReferenceDrafter.read(path))
    assert max(hidden, confidence) <= BOUND
    assert logits <= rounded
    assert max(compare(path, ReferenceDrafter.read(DRAFTER))) <= quantised


MATRICES = {name for name, data in DrafterFile().tensors.items() if data.ndim > 1} - {W1, W2, CONFIDENCE}


@pytest.mark.parametrize(
    ("kind", "names", "bound"),
    [(Type.F16, MATRICES, 2e-3), (Type.BF16, MATRICES, 2e-2), (Type.Q8_0, {"fc.weight"}, 2e-2)],
    ids=["F16", "BF16", "fusion in Q8_0"],
)
def test_matrices_of_any_type(kind: Type, names: set[str], bound: float, tmp_path: Path) -> None:
    path = DrafterFile(kinds=dict.fromkeys(names, kind)).write(tmp_path / "drafter.gguf")
    assert max(compare(path, ReferenceDrafter.read(path))) <= bound


def test_features_beyond_the_range_of_f16(tmp_path: Path) -> None:
    """V4-Flash's are of the order of 10^3, and a product in F16 rounds them to F16."""
    loud = {"token_embd.weight": target_ends()[0].astype(np.float32) * 1e6}
    model = _native.Model.load(str(edited(TARGET, tmp_path / "target.gguf", tensors=loud)), device=DEVICE, threads=1)
    states = []
    for kind in (Type.F16, Type.F32):
        path = DrafterFile(kinds={"fc.weight": kind}).write(tmp_path / f"{kind.name}.gguf")
        drafter = _native.Drafter.load(str(path), model)
        session = _native.Session(model, context=64, kv_dtype="f32", drafter=drafter)
        session.prefill(prompt(40))
        state = visible_state(session, (model, drafter), tmp_path / "state")
        assert np.abs(state["features"]).max() > np.finfo(np.float16).max
        session.draft(5)
        states.append(visible_state(session, (model, drafter), tmp_path / "state"))
    for stage in range(3):
        assert relative_error(*(state[f"context {stage}"] for state in states)) <= 2e-3
