"""A real target with its drafter, where there is one: DS4_TEST_TARGET and DS4_TEST_DSPARK name the files."""

from __future__ import annotations

import os
from collections.abc import Iterator

import numpy as np
import pytest
from generating import GREEDY, ids_of

from ds4py import Engine, Session

PROMPT = "def quicksort(items):\n    "
NEW_TOKENS = 48
NEAR_TIE = 0.5
"""Of logits: kernels that compute a row among others may round it otherwise than alone."""


@pytest.fixture(scope="module")
def session() -> Iterator[Session]:
    """A session of the pair; skips where a file is not named."""
    names = ("DS4_TEST_TARGET", "DS4_TEST_DSPARK")
    missing = [name for name in names if not os.environ.get(name)]
    if missing:
        pytest.skip(f"{' and '.join(missing)} not set: no real file to test with")
    target, drafter = (os.environ[name] for name in names)
    with Engine(target, drafter=drafter) as engine, engine.session(context=1024) as session:
        yield session


def test_the_drafter_drafts(session: Session) -> None:
    """A block of ids of the vocabulary, other after another anchor."""
    session.rewind(0)
    session.prefill(session.tokenizer.encode(PROMPT))
    blocks = []
    for anchor in (5, 6):
        session.anchor = anchor
        blocks.append(session.draft().tokens.tolist())
    assert session.drafter is not None
    assert [len(block) for block in blocks] == [session.drafter.block] * 2
    assert all(0 <= token < session.tokenizer.vocab_size for block in blocks for token in block)
    assert blocks[0] != blocks[1]


def test_every_token_is_the_targets_choice(session: Session) -> None:
    """Greedy speculative text, then the same tokens through the target alone."""
    session.rewind(0)
    tokens = ids_of(list(session.generate(PROMPT, max_tokens=NEW_TOKENS, sampling=GREEDY, draft="dspark", width=15)))
    assert session.stats.speculation.accepted > 0
    session.rewind(0)
    session.prefill(session.tokenizer.encode(PROMPT))
    for token in tokens:
        logits = session.logits()
        assert float(np.max(logits)) - float(logits[token]) <= NEAR_TIE
        session.prefill([token])
