"""What the tests of sessions share."""

from __future__ import annotations

import pytest

from ds4py import Engine


@pytest.fixture(scope="module")
def engine(embedded: Engine) -> Engine:
    """The pair in the package, whose pool of sessions a test may replace."""
    return embedded
