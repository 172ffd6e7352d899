"""What the tests of text share."""

from __future__ import annotations

import pytest
import real_vocabulary

from ds4py.tokenizer import Tokenizer


@pytest.fixture(scope="session")
def real() -> Tokenizer:
    """The published vocabulary."""
    return Tokenizer.from_metadata(real_vocabulary.metadata())
