"""The tests themselves: none waits without an end, and a quick look goes into every folder."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest
from paths import TESTS

pytestmark = pytest.mark.fast

FILES = sorted(TESTS.rglob("*.py"))
READERS = ("reading.py",)  # they have limits of their own


def names(node: ast.expr) -> str:
    """The dotted name that an expression is, as far as it is one."""
    if isinstance(node, ast.Attribute):
        return f"{names(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else "?"


def waits(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Lines with calls that have no limit."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or any(each.arg == "timeout" for each in node.keywords):
            continue
        name = names(node.func)
        owner, _, method = name.rpartition(".")
        stream = owner.rpartition(".")[2] in ("stdout", "stderr", "stdin")
        if (
            name in ("subprocess.run", "subprocess.check_output", "subprocess.check_call", "os.read")
            or method == "communicate"
            or (method in ("join", "result", "wait") and not node.args)
            or (method in ("read", "readline", "readlines") and stream)
        ):
            yield node.lineno, name


@pytest.mark.parametrize("file", [file for file in FILES if file.name not in READERS], ids=lambda file: file.stem)
def test_no_call_waits_without_an_end(file: Path) -> None:
    assert [*waits(ast.parse(file.read_text(encoding="utf-8")))] == []


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("subprocess.run(x)", 1),
        ("subprocess.run(x, timeout=3)", 0),
        ("process.communicate(b'', timeout=3)", 0),
        ("process.communicate(b'')", 1),
        ("process.wait()", 1),
        ("event.wait(3)", 0),
        ("', '.join(x)", 0),
        ("thread.join()", 1),
        ("future.result()", 1),
        ("process.stdout.read()", 1),
        ("os.read(3, 1)", 1),
    ],
)
def test_what_waits_is_seen(text: str, found: int) -> None:
    assert len([*waits(ast.parse(text))]) == found


def test_every_folder_has_fast_tests() -> None:
    folders = {file.parent for file in FILES if file.name.startswith("test_")}
    fast = {file.parent for file in FILES if "pytest.mark.fast" in file.read_text(encoding="utf-8")}
    assert {folder.name for folder in folders - fast} == set()
    assert len(folders) > 10
