"""The arrows of docs/design.md: what each room knows of the others, and that the page names every folder."""

from __future__ import annotations

import re

import import_graph
import include_graph
import pytest
from paths import ROOT, TESTS

pytestmark = pytest.mark.fast

NATIVE = {
    "include": set(),
    "machine": set(),
    "formats": set(),
    "kernels/cpu": set(),
    "kernels": {"include", "kernels/cpu"},
    "gguf": {"include", "kernels/cpu"},
    "sampling": {"include"},
    "acceptance": {"include", "sampling"},
    "backend": {"include", "machine"},
    "model": {"gguf"},
    "weights": {"backend", "gguf", "include", "kernels", "kernels/cpu", "machine", "model"},
    "drafter": {"backend", "gguf", "include", "machine", "model", "weights"},
    "ops": {"include", "kernels", "kernels/cpu"},
    "state": {"drafter", "include", "model"},
    "graph": {"drafter", "include", "model", "ops", "state", "weights"},
    "session": {"backend", "drafter", "graph", "include", "kernels", "machine", "model", "ops", "state", "weights"},
    "c": {"drafter", "include", "model"},
    "bindings": {"backend", "drafter", "formats", "gguf", "include", "kernels/cpu", "machine", "model", "weights"},
}
"""Rooms of the native sources, lowest first, with the rooms whose headers each may include."""

PYTHON = {
    "_native": set(),
    "data": set(),
    "deprecated": set(),
    "json_types": set(),
    "libraries": set(),
    "constants": {"_native"},
    "errors": {"_native"},
    "tokenizer": {"errors"},
    "sampling": {"_native", "errors"},
    "console": {"errors"},
    "memory": {"_native", "console", "errors"},
    "chat": {"errors", "json_types"},
    "grammar": {"chat", "errors", "tokenizer"},
    "prefix_cache": {"_native", "errors"},
    "speculative": {
        *("_native", "constants", "deprecated", "errors", "grammar", "json_types", "prefix_cache", "sampling"),
    },
    "generation": {"chat", "errors", "grammar", "prefix_cache", "sampling", "speculative", "tokenizer"},
    "runtime": {
        *("_native", "chat", "constants", "data", "deprecated", "errors", "generation", "grammar", "memory"),
        *("prefix_cache", "sampling", "speculative", "tokenizer"),
    },
    "profile": {"constants", "errors", "json_types", "runtime", "speculative"},
    "doctor": {"_native", "constants", "data", "errors", "json_types", "memory", "runtime"},
    "server": {
        *("chat", "constants", "deprecated", "errors", "generation", "grammar", "json_types", "runtime", "sampling"),
        *("tokenizer",),
    },
    "cli": {
        *("_native", "chat", "console", "constants", "doctor", "errors", "generation", "json_types", "memory"),
        *("prefix_cache", "profile", "runtime", "sampling", "server", "speculative", "tokenizer"),
    },
    "converter": {"_native", "console", "constants", "errors", "json_types", "tokenizer"},
    "__main__": {"cli"},
}
"""Rooms of `ds4py`, lowest first, with the rooms that each may import."""


@pytest.mark.parametrize("known", [NATIVE, PYTHON], ids=["native", "python"])
def test_arrows_run_one_way(known: dict[str, set[str]]) -> None:
    order = list(known)
    assert {room: below for room, below in known.items() if not below <= set(order[: order.index(room)])} == {}


@pytest.mark.parametrize("room", include_graph.room_graph())
def test_native_rooms_know_those_below(room: str) -> None:
    assert include_graph.room_graph()[room] - NATIVE[room] == set()


@pytest.mark.parametrize("room", import_graph.room_graph())
def test_python_rooms_know_those_below(room: str) -> None:
    assert import_graph.room_graph()[room] - PYTHON[room] == set()


def test_no_arrow_is_allowed_that_nobody_needs() -> None:
    for graph, known in ((include_graph.room_graph(), NATIVE), (import_graph.room_graph(), PYTHON)):
        assert {room: extra for room, below in known.items() if (extra := below - graph.get(room, set()))} == {}


def test_python_modules_have_no_circles() -> None:
    assert import_graph.circles(import_graph.module_graph()) == []


def test_native_headers_have_no_circles() -> None:
    assert import_graph.circles(include_graph.header_graph()) == []


def test_helpers_of_tests_import_no_tests() -> None:
    files = [*(TESTS / "helpers").glob("*.py"), TESTS / "conftest.py"]
    text = "\n".join(file.read_text(encoding="utf-8") for file in files)
    assert re.findall(r"^\s*(?:from|import) (?:tests\b|test_\w+).*", text, re.MULTILINE) == []


def test_a_circle_is_found() -> None:
    assert import_graph.circles({"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": {"a"}}) == [["b", "c"]]


def test_an_exported_name_is_its_modules() -> None:
    assert import_graph.defining("ds4py", "Session").startswith("ds4py.runtime.")
    assert import_graph.defining("ds4py", "chat") == "ds4py.chat"


def test_the_design_names_every_folder() -> None:
    layout = (ROOT / "docs" / "design.md").read_text(encoding="utf-8").split("\n## Rooms\n")[1].split("\n## ")[0]
    named = set(re.findall(r"`([\w/]+)`", layout))
    inside = [child for part in ("native/src", "native/kernels", "ds4py") for child in (ROOT / part).iterdir()]
    folders = [child for child in inside if child.is_dir()] + [child.parent for child in ROOT.glob("*/*.py")]
    wanted = {str(folder.relative_to(ROOT)) for folder in folders if any(folder.glob("*.*"))}
    assert {folder for folder in wanted if not folder.endswith("__pycache__")} - named == set()
