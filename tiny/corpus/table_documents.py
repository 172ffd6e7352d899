"""Generates tables under a heading: Markdown, padded and unpadded; CSV and TSV."""

from __future__ import annotations

import csv
import io
import random
from typing import Any

from .schemas import Schema, maker, record, scalars
from .values import Maker
from .words import Words

SENTENCES = (
    "The table lists every {a} by {b}.",
    "Each row is one {a}; the {b} is given where it is known.",
    "Values for the {a} were taken from the {b}.",
    "The following {a} data cover the whole {b}.",
    "See the {a} below for the {b} of each entry.",
    "This is the {q} {a} after the last {b}:",
    "All of the {q} {a} entries, ordered as in the {b}:",
)


def document(rng: random.Random, words: Words) -> str:
    """Makes one document, which ends with a line end."""
    make, style = maker(rng, words)
    schema = scalars(make, style, rng.randint(2, 7))
    if rng.random() < 0.72:
        return markdown_page(make, schema)
    return separated(make, schema, rng.choice([",", ",", ",", "\t", ";"]))


def rows(make: Maker, schema: Schema) -> list[list[str]]:
    """Formats the records as cells. All numbers of a column have the same count of decimals."""
    records = [record(schema) for _ in range(make.rng.randint(4, 28))]
    return [[cell(value) for value in each.values()] for each in records]


def cell(value: Any) -> str:
    """Formats a value as people write it into a table."""
    words = {True: "yes", False: "no", None: "-"}
    return words[value] if value is None or isinstance(value, bool) else str(value)


def headings(make: Maker, schema: Schema, style: str) -> list[str]:
    """Formats the keys as column headings."""
    if style == "key":
        return list(schema)
    spaced = ["".join(f" {c.lower()}" if c.isupper() else c for c in name).replace("_", " ") for name in schema]
    return [text.title() if style == "title" else text.capitalize() for text in spaced]


def markdown_page(make: Maker, schema: Schema) -> str:
    """Makes a heading, a sentence and a table, and sometimes a second section with the same columns."""
    heads = headings(make, schema, make.rng.choice(["key", "title", "title", "sentence"]))
    marks = [make.rng.choice(["left", "left", "plain", "right", "centre"]) for _ in heads]
    if make.rng.random() < 0.5:
        marks = ["plain"] * len(heads)
    padded, level = make.rng.random() < 0.6, make.rng.choice(["#", "##", "##", "###"])
    sections = []
    for _ in range(make.rng.choice([1, 1, 1, 2, 3])):
        sections.append(lead(make, level) + markdown(heads, rows(make, schema), marks, padded))
    return "\n".join(sections)


def lead(make: Maker, level: str) -> str:
    """Makes the text before a table."""
    heading = f"{level} {make.phrase().capitalize()}\n\n" if make.rng.random() < 0.8 else ""
    if make.rng.random() < 0.35:
        return heading
    words = {"a": make.noun(), "b": make.noun(), "q": make.rng.choice(make.words.qualifiers)}
    return heading + make.rng.choice(SENTENCES).format(**words) + "\n\n"


def markdown(heads: list[str], body: list[list[str]], marks: list[str], padded: bool) -> str:
    """Formats a table. Padded ones have straight columns."""
    widths = [max(3, *(len(line[at]) for line in [heads, *body])) if padded else 0 for at in range(len(heads))]
    rules = [rule(mark, max(3, width)) for mark, width in zip(marks, widths, strict=True)]
    return "".join(line(cells, widths, marks) for cells in [heads, rules, *body])


def rule(mark: str, width: int) -> str:
    """Formats the dashes under a heading, with colons for the alignment."""
    left, right = mark in ("left", "centre"), mark in ("right", "centre")
    return (":" if left else "-") + "-" * (width - 2) + (":" if right else "-")


def line(cells: list[str], widths: list[int], marks: list[str]) -> str:
    """Formats one row of a Markdown table."""
    sides = {"right": str.rjust, "centre": str.center}
    placed = (sides.get(mark, str.ljust)(text, width) for text, width, mark in zip(cells, widths, marks, strict=True))
    return "| " + " | ".join(placed) + " |\n"


def separated(make: Maker, schema: Schema, delimiter: str) -> str:
    """Formats cells between delimiters, quoted if they must be."""
    text = io.StringIO()
    writer = csv.writer(text, delimiter=delimiter, lineterminator="\n")
    writer.writerow(headings(make, schema, make.rng.choice(["key", "key", "title"])))
    writer.writerows(rows(make, schema))
    return text.getvalue()
