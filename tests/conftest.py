"""What the tests that run a model share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from gguf_tools import GOLDEN

import ds4py


def open_engine(name: str, threads: int = 2) -> ds4py.Engine:
    """An engine on a golden file, on the CPU whatever devices there are."""
    return ds4py.Engine(GOLDEN / name, device="cpu", threads=threads)


@pytest.fixture(scope="session")
def tiny() -> Iterator[ds4py.Engine]:
    """The tiny golden target."""
    with open_engine("tiny-target-f32.gguf") as engine:
        yield engine


@pytest.fixture(scope="session")
def hard() -> Iterator[ds4py.Engine]:
    """The golden target whose hyper-connections and clamps show small mistakes."""
    with open_engine("hard-target-f32.gguf") as engine:
        yield engine
