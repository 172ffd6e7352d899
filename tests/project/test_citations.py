"""What code and documents cite exists: documents, their sections, and numbered equations."""

from __future__ import annotations

import re
from collections import Counter
from functools import cache
from pathlib import Path

import pytest
from paths import ROOT

pytestmark = pytest.mark.fast

CITED = ("model", "dspark")
"""Documents with numbered sections and equations; an equation's label begins with the document's letter, M or D."""
FOLDERS = ("bench", "cmake", "converter", "docs", "ds4py", "examples", "native", "tests", "tiny", "tools")
SUFFIXES = {".c", ".cmake", ".cpp", ".cu", ".cuh", ".h", ".hip", ".md", ".metal", ".mm", ".py", ".sh"}
LABEL = re.compile(r"\(([MD])(\d+)\)")
RANGE = re.compile(r"\(([MD])(\d+)\)-\(([MD])(\d+)\)")
DEFINED = re.compile(r"\(([MD]\d+)\)\s*$", re.MULTILINE)
NUMBERS = r"\d+(?:\.\d+)*"
SECTIONS = re.compile(rf"(?:docs/)?(model|dspark)\.md,? sections? ({NUMBERS}(?:(?:, | and |, and | to |-){NUMBERS})*)")
DOCUMENT = re.compile(r"\bdocs/([\w-]+\.md)\b")
LINK = re.compile(r"\]\((?=[\w./-]*[.#])([\w./-]*)(?:#([\w-]+))?\)")


@cache
def texts() -> dict[Path, str]:
    """Every text file of the project that can cite something."""
    files = [file for folder in FOLDERS for file in (ROOT / folder).rglob("*") if file.suffix in SUFFIXES]
    return {file: file.read_text(encoding="utf-8") for file in [*files, *ROOT.glob("*.md")] if file != Path(__file__)}


def document(name: str) -> str:
    return (ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8")


@cache
def sections(name: str) -> frozenset[str]:
    """The numbers of a document's sections."""
    return frozenset(re.findall(rf"^#+ ({NUMBERS})\.? ", document(name), re.MULTILINE))


@cache
def equations() -> Counter[str]:
    """How often each label stands at the end of a line, where it defines an equation."""
    found: Counter[str] = Counter()
    for name in CITED:
        found.update(label for label in DEFINED.findall(document(name)) if label[0] == name[0].upper())
    return found


def heading_anchors(text: str) -> set[str]:
    """Anchors of a document's headings, as GitHub makes them."""
    titles = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def missing_equations(text: str) -> list[str]:
    """Labels in a text that no document defines, those inside ranges such as (M2)-(M10) included."""
    labels = {f"{letter}{number}" for letter, number in LABEL.findall(text)}
    for letter, first, _, last in RANGE.findall(text):
        labels |= {f"{letter}{number}" for number in range(int(first), int(last) + 1)}
    return sorted(labels - equations().keys())


def missing_sections(text: str) -> list[str]:
    """Cited sections that a document does not have."""
    flat = re.sub(r"\s*\n\s*(?://+|#|\*)?\s*", " ", text)
    cited = [(name, number) for name, list_ in SECTIONS.findall(flat) for number in re.findall(NUMBERS, list_)]
    return [f"{name}.md {number}" for name, number in cited if number not in sections(name)]


@pytest.mark.parametrize("name", CITED)
def test_a_document_has_sections_and_equations(name: str) -> None:
    letter = name[0].upper()
    assert len(sections(name)) > 5
    assert sum(label[0] == letter for label in equations()) > 20


def test_an_equation_is_defined_once() -> None:
    assert [label for label, count in equations().items() if count > 1] == []


def test_cited_equations_exist() -> None:
    missing = {file.name: labels for file, text in texts().items() if (labels := missing_equations(text))}
    assert missing == {}


def test_cited_sections_exist() -> None:
    missing = {file.name: found for file, text in texts().items() if (found := missing_sections(text))}
    assert missing == {}


def test_cited_documents_exist() -> None:
    cited = {(file.name, name) for file, text in texts().items() for name in DOCUMENT.findall(text)}
    assert {(file, name) for file, name in cited if not (ROOT / "docs" / name).is_file()} == set()


def test_links_between_documents_lead_somewhere() -> None:
    broken = []
    for file, text in texts().items():
        if file.suffix != ".md":
            continue
        for target, anchor in LINK.findall(text):
            to = (file.parent / target).resolve() if target else file
            if not to.exists() or (anchor and to.suffix == ".md" and anchor not in heading_anchors(to.read_text())):
                broken.append(f"{file.name}: {target}#{anchor}")
    assert broken == []


def test_nothing_cites_what_is_not_in_the_repository() -> None:
    assert [file.name for file, text in texts().items() if re.search(r"\bspec/[\w.-]+\.md", text)] == []


def test_native_comments_cite_equations_by_label() -> None:
    comment = re.compile(r"^\s*//.*?(?<![\w>\]])\((\d{1,2})\)", re.MULTILINE)
    bare = {file.name: comment.findall(text) for file, text in texts().items() if file.suffix in {".h", ".cpp"}}
    assert {name: numbers for name, numbers in bare.items() if numbers} == {}


def test_a_citation_of_what_is_missing_is_found() -> None:
    assert missing_equations("as in (M1)-(M3) and (D999)") == ["D999"]
    assert missing_sections("docs/model.md section 2.1") == []
    assert missing_sections("// docs/dspark.md, sections 2.7 and\n// 99.1") == ["dspark.md 99.1"]


def test_paths_in_documents_exist() -> None:
    path = re.compile(r"`((?:bench|converter|docs|ds4py|examples|native|tests|tiny|tools)/[\w./-]+?)(?:::\w+)?`")
    missing = {
        (file.name, name)
        for file, text in texts().items()
        if file.suffix == ".md"
        for name in path.findall(text)
        if not (ROOT / name).exists() and not any(ROOT.glob(f"{name}.*"))
    }
    assert missing == set()
