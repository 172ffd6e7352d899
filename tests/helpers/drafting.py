"""Helpers of the drafting tests: the golden pair, sessions on it, and drafts with their intermediate results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from device import DEVICE, ROUNDING
from gguf_tools import DRAFTER, TARGET
from paths import GOLDEN

from ds4py import _native

WINDOW, VOCAB, MASK = 32, 512, 511
SAME = 2e-5 * ROUNDING  # relative: the same numbers in another order of sums


@dataclass(frozen=True)
class Draft:
    """A block and its trace; `q` and `ids` are None where the native draft has none."""

    tokens: np.ndarray
    confidence: np.ndarray | None
    q: np.ndarray | None
    ids: np.ndarray | None
    hidden: np.ndarray
    base: np.ndarray


@cache
def golden(name: str = "drafter") -> dict[str, np.ndarray]:
    """The arrays of the drafter's golden file, or the target's (golden/README.md)."""
    with np.load(GOLDEN / f"{name}-golden.npz") as file:
        return dict(file)


def prompt(length: int | None = None) -> np.ndarray:
    """The golden prompt, whose features are known at every position."""
    return golden("target")["tokens"][:length]


@cache
def target() -> _native.Model:
    return _native.Model.load(str(TARGET), device=DEVICE, threads=1)


def load(path: Path) -> _native.Drafter:
    return _native.Drafter.load(str(path), target())


@cache
def golden_drafter() -> _native.Drafter:
    return load(DRAFTER)


def open_session(
    tokens: Sequence[int] | np.ndarray = (), *, drafter: _native.Drafter | None = None, kv_dtype: str = "f32"
) -> _native.Session:
    """A session with `tokens` in its state; the drafter is the golden one unless another is given."""
    session = _native.Session(target(), context=1024, kv_dtype=kv_dtype, drafter=drafter or golden_drafter())
    if len(tokens):
        session.prefill(np.asarray(tokens, np.int32))
    return session


def draft(session: _native.Session, anchor: int, **options: Any) -> Draft:
    """Drafts after `anchor`, and returns the draft with its trace."""
    block, trace = session.draft(int(anchor), **options), session.diagnostics.draft_trace()
    return Draft(block.tokens, block.confidence, block.q_probs, block.q_ids, trace.hidden, trace.base)


def sampler(temperature: float = 1.0, **policy: Any) -> _native.Sampler:
    """Returns a sampler; with the default policy, q is the softmax of the logits."""
    return _native.Sampler(_native.SamplingPolicy(temperature=temperature, **policy))


def log_softmax(logits: np.ndarray) -> np.ndarray:
    """Returns the logarithm of each row's softmax, in float64."""
    shifted = np.float64(logits) - logits.max(-1, keepdims=True)
    return np.asarray(shifted - np.log(np.exp(shifted).sum(-1, keepdims=True)))


def relative_error(found: np.ndarray, wanted: np.ndarray) -> float:
    """Returns the relative distance of the worst row."""
    return float((np.linalg.norm(found - wanted, axis=-1) / np.linalg.norm(wanted, axis=-1)).max())


def assert_same(found: Draft, wanted: Draft, bound: float = SAME) -> None:
    """Two arg max drafts agree."""
    assert relative_error(found.hidden, wanted.hidden) <= bound
    assert relative_error(found.base, wanted.base) <= bound
    np.testing.assert_array_equal(found.tokens, wanted.tokens)
    np.testing.assert_allclose(found.confidence, wanted.confidence, atol=bound)
