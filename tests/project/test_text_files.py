"""Every text file of the project ends with exactly one line end, and has no carriage returns."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from paths import ROOT

FOLDERS = ("bench", "cmake", "converter", "docs", "ds4py", "native", "tests", "tools", ".ci")
SUFFIXES = {".py", ".pyi", ".cpp", ".h", ".md", ".cmake", ".sh", ".toml", ".yaml", ".txt", ""}


def text_files() -> Iterator[Path]:
    yield from (path for path in ROOT.iterdir() if path.is_file() and path.suffix in SUFFIXES)
    for folder in filter(Path.is_dir, map(ROOT.joinpath, FOLDERS)):
        files = (path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
        yield from (path for path in files if path.suffix in SUFFIXES)


@pytest.mark.parametrize("path", [path.relative_to(ROOT).as_posix() for path in sorted(text_files())])
def test_line_ends(path: str) -> None:
    data = (ROOT / path).read_bytes()
    assert not data or (data.endswith(b"\n") and not data.endswith(b"\n\n"))
    assert b"\r" not in data
