"""Sessions whose drafts and acceptance are computed by a device's own kernels, in the emulator."""

from __future__ import annotations

import os

import pytest

from ds4py import Engine, Session

DIALECTS = {"waves of 32": "emulated", "waves of 64": "emulated64", "Metal": "emulated-metal"}
OWN = {"draft attention": "own (emulated)", "Markov head": "own (emulated)", "acceptance": "own (emulated)"}


def use(monkeypatch: pytest.MonkeyPatch, ops: str) -> None:
    """Sessions that are opened from now on use the kernels that DS4_OPS names."""
    monkeypatch.setenv("DS4_OPS", ops)


def open_on_device(monkeypatch: pytest.MonkeyPatch, engine: Engine, ops: str = "emulated") -> Session:
    """A session with these kernels. Skips in builds without the emulator, which those for tests have."""
    use(monkeypatch, ops)
    session = engine.session(context=512, kv_dtype="f32")
    if session.ops() != OWN and "DS4_NATIVE_TESTS" not in os.environ:
        pytest.skip("this build has no emulator (-DDS4_TESTS=ON)")
    assert session.ops() == OWN
    return session
