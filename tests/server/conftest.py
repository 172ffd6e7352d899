"""What the tests of answers that are written down share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from fake_engine import FakeEngine, renewed
from serving import Live, live


@pytest.fixture(scope="module")
def server() -> Iterator[Live]:
    """A server whose engine is a fake one."""
    with live(FakeEngine()) as running:
        yield running


@pytest.fixture
def engine(server: Live) -> FakeEngine:
    """The server's engine, as new."""
    return renewed(server.service.engine)
