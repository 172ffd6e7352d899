"""Quantised files load, agree with the F32 values their blocks stand for, and generate."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from device import DEVICE
from gguf import GGMLQuantizationType as Type
from real_vocabulary import metadata
from synthetic import VOCAB, write_target

from ds4py import Engine, Sampling

TOKENS = np.random.default_rng(9).integers(3, VOCAB, 150)
EXPERTS = (Type.Q4_K, Type.Q2_K, Type.IQ2_XXS, Type.MXFP4, Type.Q8_0)


def logits(path: Path) -> np.ndarray:
    with Engine(path, device=DEVICE, threads=1) as engine, engine.session(context=256, kv_dtype="f32") as session:
        return session.evaluate(TOKENS)


@pytest.mark.parametrize("experts", EXPERTS, ids=lambda kind: kind.name)
def test_quantised_products_agree_with_their_values(tmp_path: Path, experts: Type) -> None:
    """What is left is the rounding of activations to eight bits, which now and then flips a choice of experts."""
    found = logits(write_target(tmp_path / "quantised.gguf", experts))
    wanted = logits(write_target(tmp_path / "f32.gguf", experts, as_f32=True))
    errors = np.linalg.norm(found - wanted, axis=1) / np.linalg.norm(wanted, axis=1)
    assert np.median(errors) < 0.15
    assert np.isfinite(found).all()


@pytest.mark.parametrize(
    "dense", [Type.Q4_K, Type.Q6_K, Type.IQ2_XXS, Type.BF16, Type.Q4_0, Type.F16], ids=lambda kind: kind.name
)
def test_any_type_for_any_matrix(tmp_path: Path, dense: Type) -> None:
    assert np.isfinite(logits(write_target(tmp_path / "model.gguf", Type.Q4_K, dense))).all()


@pytest.mark.parametrize("experts", EXPERTS, ids=lambda kind: kind.name)
def test_generating_with_the_real_vocabulary(tmp_path: Path, experts: Type) -> None:
    path = write_target(tmp_path / "model.gguf", experts, tokenizer=metadata())
    with Engine(path, device=DEVICE, threads=1) as engine, engine.session(context=256) as session:
        assert engine.tokenizer.vocab_size == 129280
        pieces = list(
            session.generate("def quicksort(", max_tokens=8, sampling=Sampling(seed=1, logit_bias={1: -np.inf}))
        )
    ids = [token for piece in pieces for token in piece.tokens]
    assert len(ids) == 8
    assert "".join(piece.text for piece in pieces) == engine.tokenizer.decode(ids)
