"""A drafter that is loaded but not used leaves the target's numbers and its text alone."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from device import DEVICE
from generating import CONTINUATION, GREEDY, PROMPT, ids_of
from gguf_tools import TARGET

from ds4py import Engine, Sampling


@pytest.fixture(scope="module")
def alone() -> Iterator[Engine]:
    """The target of the pair without its drafter."""
    with Engine(TARGET, device=DEVICE, threads=1) as engine:
        yield engine


@pytest.mark.parametrize("kv_dtype", ["f16", "f32"])
def test_logits_of_steps_and_verifies_are_the_same_bits(alone: Engine, pair: Engine, kv_dtype: str) -> None:
    """At a prompt's end they are the same up to rounding: with a drafter the last layer computes more of its rows."""
    found = []
    for engine in (alone, pair):
        with engine.session(context=512, kv_dtype=kv_dtype) as session:
            session.prefill(PROMPT)
            ends = session.logits()
            rows = [session.evaluate([token])[0] for token in CONTINUATION[:6]]
            session.anchor = CONTINUATION[6]
            rows += list(session.verify(CONTINUATION[7:12]).copy())
            found.append((ends, np.array(rows)))
    (ends, rows), (ends_beside_it, rows_beside_it) = found
    np.testing.assert_array_equal(rows_beside_it, rows)
    np.testing.assert_allclose(ends_beside_it, ends, rtol=0, atol=1e-5)


@pytest.mark.parametrize("sampling", [GREEDY, Sampling(seed=4)], ids=["greedy", "sampled"])
def test_text_is_the_same(alone: Engine, pair: Engine, sampling: Sampling) -> None:
    found = []
    for engine in (alone, pair):
        with engine.session(context=512) as session:
            found.append(ids_of(list(session.generate(PROMPT, max_tokens=24, sampling=sampling, draft="off"))))
            assert (session.stats.speculation.drafter, session.stats.speculation.drafted) == ("off", 0)
    assert found[0] == found[1]
