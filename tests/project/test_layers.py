"""The arrows of docs/design.md: what a folder may know of the others, and that the page has every folder."""

from __future__ import annotations

import ast
import re

import pytest
from paths import ROOT

SRC = "native/src/"
KNOWS = {  # folders of native/src beside one's own
    "machine": set(),
    "backend": {"machine"},
    "weights": {"backend", "gguf", "machine", "model"},
    "formats": set(),
    "gguf": set(),
    "sampling": set(),
    "acceptance": {"sampling"},
    "ops": set(),
    "model": {"gguf"},
    "drafter": {"backend", "gguf", "machine", "model", "weights"},
    "state": {"drafter", "model"},
    "graph": {"drafter", "model", "ops", "state", "weights"},
    "session": {"backend", "drafter", "graph", "machine", "model", "ops", "state", "weights"},
}
TOP = {"server", "cli", "doctor", "profile"}
ABOVE = {  # parts of ds4py that these must not import, types apart
    "sampling": {"runtime", "generation", "prefix_cache", "speculative", "chat", "grammar", *TOP},
    "tokenizer": {"runtime", "generation", "prefix_cache", "speculative", "chat", "grammar", *TOP},
    "chat": {"runtime", "generation", "prefix_cache", "speculative", "grammar", *TOP},
    "grammar": {"runtime", "generation", "prefix_cache", "speculative", *TOP},
    "prefix_cache": {"runtime", "generation", "speculative", "chat", "grammar", *TOP},
    "speculative": {"runtime", "generation", *TOP},
    "memory": {"runtime", "generation", "prefix_cache", "speculative", "chat", "grammar", *TOP},
    "generation": {"runtime", *TOP},
    "console": {"runtime", "generation", "prefix_cache", "speculative", "chat", "grammar", *TOP},
    "runtime": TOP,
    "profile": {"server", "cli", "doctor"},
    "doctor": {"server", "cli", "profile"},
    "server": {"cli", "doctor", "profile"},
}


def included(folder: str) -> set[str]:
    """Folders of native/src whose headers are included."""
    files = [file for file in (ROOT / folder).rglob("*") if file.suffix in (".h", ".cpp", ".cuh", ".cu", ".mm", ".hip")]
    assert files
    text = "\n".join(file.read_text(encoding="utf-8") for file in files)
    return {name.split("/")[0] for name in re.findall(r'#include "([^"]+)/', text)} & set(KNOWS)


def imported(package: str) -> set[str]:
    """Parts of ds4py that are imported when a program runs."""
    found: set[str] = set()
    for file in (ROOT / "ds4py" / package).rglob("*.py"):
        tree = ast.parse(file.read_text(encoding="utf-8"))
        typing = {id(node) for each in ast.walk(tree) if is_for_types(each) for node in ast.walk(each)}
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and id(node) not in typing and (node.module or "").startswith("ds4py."):
                found.add(str(node.module).split(".")[1])
    return found - {package}


def is_for_types(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


@pytest.mark.parametrize("folder", KNOWS)
def test_native_folders_know_those_below(folder: str) -> None:
    assert included(SRC + folder) <= KNOWS[folder] | {folder}


def test_kernels_know_no_model() -> None:
    assert included("native/kernels") == set()


@pytest.mark.parametrize("package", ABOVE)
def test_python_packages_know_those_below(package: str) -> None:
    assert imported(package) & ABOVE[package] == set()


def test_the_design_names_every_folder() -> None:
    layout = (ROOT / "docs" / "design.md").read_text(encoding="utf-8").split("\n## ")[2]
    named = set(re.findall(r"`([\w/]+)`", layout))
    inside = [child for part in ("native/src", "native/kernels", "ds4py", "tests") for child in (ROOT / part).iterdir()]
    folders = [child for child in inside if child.is_dir()] + [child.parent for child in ROOT.glob("*/*.py")]
    wanted = {str(folder.relative_to(ROOT)) for folder in folders if any(folder.glob("*.*"))}
    assert {folder for folder in wanted if not folder.endswith("__pycache__")} - named == set()
