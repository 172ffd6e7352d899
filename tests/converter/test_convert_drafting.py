"""Converted drafters draft: the same proposals from every contract, those of the golden drafter from its weights."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from checkpoints import golden
from converting import convert
from gguf_tools import DRAFTER, TARGET
from paths import GOLDEN

from ds4py import Engine

CONTRACTS = ("dflash", "ds4", "lucebox")
LENGTH = 200


def proposals(target: Path, drafter: Path) -> list[int]:
    """The block after the first tokens of the golden prompt."""
    reference = np.load(GOLDEN / "target-golden.npz")
    with (
        Engine(target, drafter=drafter, device="cpu", threads=1) as engine,
        engine.session(context=256, kv_dtype="f32") as session,
    ):
        session.prefill(reference["tokens"][:LENGTH])
        session.anchor = int(reference["argmax"][LENGTH - 1])
        return list(session.draft().tokens)


@pytest.mark.parametrize(("formats", "preset"), [("bf16", "f32"), ("fp8", "f32"), ("fp8", "mxfp4"), ("fp8", "q8")])
def test_contracts_draft_the_same(tmp_path: Path, formats: str, preset: str) -> None:
    source = golden(formats, drafter=True).write(tmp_path / "checkpoint")
    target = convert(source, tmp_path / "target.gguf", "--preset", preset)
    found = []
    for contract in CONTRACTS:
        flags = ("--dspark-only", "--contract", contract, "--preset", preset)
        found.append(proposals(target, convert(source, tmp_path / f"{contract}.gguf", *flags)))
    assert found[0] == found[1] == found[2] and len(found[0]) == 5
    if formats == "bf16":
        assert found[0] == proposals(TARGET, DRAFTER)
