"""Old names of modules, classes and attributes work and warn."""

from __future__ import annotations

import sys
from importlib import import_module

import pytest

import ds4py
from ds4py.deprecated import MOVED


@pytest.mark.parametrize(("old", "new"), MOVED.items())
def test_an_old_module_has_the_names_of_the_new_one(old: str, new: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, old, raising=False)
    with pytest.warns(DeprecationWarning, match=f"{old} has moved: import {new} instead") as warned:
        module = import_module(old)
    names = [name for name in vars(import_module(new)) if not name.startswith("__")]
    assert names and all(getattr(module, name) is getattr(import_module(new), name) for name in names)
    assert len(warned) == 1


@pytest.mark.parametrize(
    ("module", "old", "new"),
    [
        ("ds4py.placement", "Wanted", "ds4py.memory.DeviceOptions"),
        ("ds4py.proof", "Proof", "ds4py.runtime.backend_status.BackendStatus"),
        ("ds4py.reuse", "turn_marks", "ds4py.prefix_cache.cache_breakpoints"),
        ("ds4py.options", "Options", "ds4py.generation.GenerationOptions"),
        ("ds4py.speculative", "Request", "ds4py.speculative.DraftRequest"),
    ],
)
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_an_old_name_is_the_new_class(module: str, old: str, new: str) -> None:
    package, _, name = new.rpartition(".")
    assert getattr(import_module(module), old) is getattr(import_module(package), name)


def test_a_name_that_never_was_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'Nothing'"):
        _ = ds4py.speculative.Nothing
    with pytest.raises(ModuleNotFoundError):
        import_module("ds4py.nothing")


def test_the_placement_of_an_engine_is_its_device_map() -> None:
    with ds4py.Engine() as engine, pytest.warns(DeprecationWarning, match=r"Engine\.device_map"):
        assert engine.placement == engine.device_map
