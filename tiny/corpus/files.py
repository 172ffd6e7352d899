"""Reads documents from the fetched packages and from Python's own library: code, docs and prose."""

from __future__ import annotations

import platform
import sysconfig
from collections.abc import Iterable, Iterator
from pathlib import Path

from . import rdata
from .sources import DATABASE_DOCS, NOVELS, PIP, PLAYS, PYTHON_DOCS, SourceError, members, path, version
from .split import rank, share

COPIES = ("/site-packages/", "/__pycache__/", "/_vendor", "/latex/_antlr", "/autolev/")
TABLES = (
    "/encodings/",
    "/pydoc_data/",
    "/locale/",
    "/locales/",
    "/search/",
    "/unistyle",
    "/unicode",
    "/pygments/lexers/",
)
DATA = ("/lib2to3/tests/data", "/bad_", "/migrations/", "/idle_test/", "/benchmarks/", "/_generated")
ENDS = ("_builtins.py", "/_mapping.py", "_codes.py", "_spans.py")
SKIPPED = (*COPIES, *TABLES, *DATA, *ENDS)
"""Parts of paths with generated tables, data and copies of other projects."""

TESTS_KEPT = 0.12
CODE_LIMIT = 4.5e6
"""Characters of code that one package may give."""

PLAYS_LIMIT = 3.0e6
"""Characters of drama beside the novels."""

Entry = dict[str, str | int]
"""A source's line for the model card."""


def code(sources: Path) -> tuple[list[str], list[Entry]]:
    """Reads Python's standard library with a share of its tests, and the code of the packages."""
    library = Path(sysconfig.get_paths()["stdlib"])
    paths = sorted(library.rglob("*.py"))
    texts = list(good_code((f"/{each.relative_to(library)}", each.read_bytes()) for each in paths))
    entries = [entry("code", "python standard library", platform.python_version(), "PSF-2.0", texts)]
    for source in PIP:
        package = path(sources, source)
        chosen = share(good_code(members(package)), CODE_LIMIT)
        entries.append(entry("code", source.name, version(package), source.licence, chosen))
        texts += chosen
    return texts, entries


def docs(sources: Path) -> tuple[list[str], list[Entry]]:
    """Reads documentation in reStructuredText and Markdown, from Debian and from the source archives."""
    texts: list[str] = []
    entries = []
    for source in (PYTHON_DOCS, DATABASE_DOCS, *PIP):
        package = path(sources, source)
        chosen = sorted(set(good_docs(members(package))) - set(texts), key=rank)
        entries.append(entry("docs", source.name, version(package), source.licence, chosen))
        texts += chosen
    return texts, entries


def prose(sources: Path) -> tuple[list[str], list[Entry]]:
    """Reads six novels, and plays beside them."""
    novels = novel_texts(path(sources, NOVELS))
    pages = texts_of(members(path(sources, PLAYS)))
    scripts = (text for name, text in pages if "/plays/" in name and name.endswith(".md"))
    plays = share(("\n".join(map(str.rstrip, text.splitlines())) + "\n" for text in scripts), PLAYS_LIMIT)
    return [*novels, *plays], [
        entry("prose", source.name, version(path(sources, source)), source.licence, texts)
        for source, texts in ((NOVELS, novels), (PLAYS, plays))
    ]


def entry(domain: str, name: str, release: str, licence: str, texts: Iterable[str]) -> Entry:
    """Makes the line of a source for the model card."""
    return {
        "domain": domain,
        "source": name,
        "version": release,
        "licence": licence,
        "characters": sum(map(len, texts)),
    }


def novel_texts(package: Path) -> list[str]:
    """Returns the novels in the R package. Raises SourceError if there are none."""
    for name, content in members(package):
        if name.endswith("/data/Rdata.rdb"):
            return rdata.texts(content)
    raise SourceError(f"{package}: no data/Rdata.rdb in it; wanted the package {NOVELS.name}")


def texts_of(files: Iterable[tuple[str, bytes]]) -> Iterator[tuple[str, str]]:
    """Yields the files that are UTF-8 and nearly all ASCII, with plain line ends."""
    for name, content in files:
        try:
            text = content.decode("utf-8").replace("\r\n", "\n")
        except UnicodeDecodeError:
            continue
        if sum(map(text.count, set(text) - ASCII)) <= 0.01 * len(text):
            yield name, text


ASCII = set(map(chr, range(128)))


def good_code(files: Iterable[tuple[str, bytes]]) -> Iterator[str]:
    """Yields Python files that a person wrote, without tables and generated files, and with a share of the tests."""
    named = ((name, content) for name, content in files if name.endswith(".py") and kept(name))
    for name, text in texts_of(named):
        if is_code(text) and ("/test" not in name or rank(text) < TESTS_KEPT * 2**64):
            yield text


def kept(name: str) -> bool:
    """Tells whether nothing in the path says that the file is data or another project's."""
    return not any(part in name for part in SKIPPED)


def is_code(text: str) -> bool:
    """Tells whether a file looks like code rather than like data."""
    lines = text.count("\n") + 1
    head = text[:600].lower()
    digits = sum(map(text.count, "0123456789")) / max(1, len(text))
    made = "generated by" in head or "do not edit" in head or "auto-generated" in head
    return 400 <= len(text) < 250_000 and len(text) / lines < 70 and longest(text) < 400 and digits < 0.08 and not made


def longest(text: str) -> int:
    """Returns the characters of the longest line."""
    return max(map(len, text.splitlines()), default=0)


def good_docs(files: Iterable[tuple[str, bytes]]) -> Iterator[str]:
    """Yields documentation files: sources of pages, but no changelogs, indices or licences."""
    named = ((name, content) for name, content in files if is_page(name.lower()))
    for _, text in texts_of(named):
        if len(text) >= 600 and longest(text) < 2000:
            yield text


def is_page(name: str) -> bool:
    """Tells whether a file of this name is a page of documentation."""
    page = name.endswith((".rst", ".rst.txt", ".md")) or (name.endswith(".txt") and "/docs/" in name)
    unwanted = ("changelog", "/changes", "licen", "authors", "/test", "requirements", "egg-info", "/.github", "history")
    return page and not any(part in name for part in unwanted)
