"""tests/obligations.md has every row, in the words it promises, and cites nothing that does not exist."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest
from paths import ROOT, TESTS

pytestmark = pytest.mark.fast

PAGE = TESTS / "obligations.md"
LAST = {"S0": 67, "S1": 77, "S3": 38, "S4": 46}
POINTS = 27
SUFFIXES = (".py", ".cpp", ".h", ".md", ".txt", ".yaml", ".toml")


class Row(NamedTuple):
    """One obligation."""

    id: str
    what: str
    status: str
    where: str
    shown: str


def cells(pattern: str) -> list[list[str]]:
    """The cells of the table rows whose first cell fits."""
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    tables = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("| ")]
    return [found for found in tables if re.fullmatch(pattern, found[0])]


@cache
def rows() -> list[Row]:
    return [Row(*found) for found in cells(r"S\d-\d+")]


def cited(text: str) -> list[str]:
    """What stands in backticks and is a path or a test."""
    quoted = re.findall(r"`([^`]+)`", text)
    return [name for name in quoted if "::" in name or "/" in name or name.endswith(SUFFIXES)]


@cache
def definitions(path: Path) -> set[str]:
    """Names of tests in a file, those in classes as CLASS::NAME; of native cases in C++."""
    source = path.read_text(encoding="utf-8")
    if path.suffix == ".cpp":
        return set(re.findall(r"^CASE\((\w+)\)", source, re.MULTILINE))
    found = set()
    for node in ast.parse(source).body:
        if isinstance(node, ast.FunctionDef):
            found.add(node.name)
        elif isinstance(node, ast.ClassDef):
            found |= {f"{node.name}::{each.name}" for each in node.body if isinstance(each, ast.FunctionDef)}
    return {name for name in found if name.rpartition("::")[2].startswith("test_")}


@cache
def modules() -> dict[str, Path]:
    """Files of tests, in Python and in C++, by their names without a suffix, in whatever folder."""
    files = [file for file in TESTS.rglob("test_*") if file.suffix in (".py", ".cpp")]
    assert len({file.stem for file in files}) == len(files)
    return {file.stem: file for file in files}


def exists(name: str) -> bool:
    """Whether there is a test FILE::NAME, a test's file, or anything else at that path."""
    file, _, test = name.partition("::")
    if test:
        return file in modules() and test in definitions(modules()[file])
    return (ROOT / file).exists() or (file.endswith(".py") and file.removesuffix(".py") in modules())


def test_every_row_is_there_once() -> None:
    wanted = [f"{group}-{number:02}" for group, last in LAST.items() for number in range(1, last + 1)]
    assert [row.id for row in rows()] == wanted
    assert [found[0] for found in cells(r"\d+")] == [str(number) for number in range(1, POINTS + 1)]


@pytest.mark.parametrize("row", rows(), ids=[row.id for row in rows()])
def test_a_row_says_what_its_status_promises(row: Row) -> None:
    assert row.what and row.where
    assert row.status in ("`met`", "`partly`", "`open`", "`outside`")
    assert (row.status == "`partly`") == ("Missing: " in row.where)
    assert (row.status == "`open`") == row.where.startswith("Not built: ")
    if row.status == "`met`":
        assert cited(row.shown)


def test_what_is_cited_exists() -> None:
    names = cited(PAGE.read_text(encoding="utf-8").partition("\n## ")[2])
    assert len(names) > 300
    assert [name for name in names if not exists(name)] == []
