"""Texts for the bench of speculation: five kinds of prompts, and questions whose answers are known.

A prompt is the beginning of a document, so any model can continue it. The continuations range from copies of earlier
text to prose that is hard to predict. A long prompt is a short one with more text before it.
"""

import json
import re
from collections.abc import Callable, Sequence
from fractions import Fraction
from html.parser import HTMLParser
from typing import Any, NamedTuple

CODE = (
    '''"""Reads and writes tracks of positions."""

import csv
import math
from dataclasses import dataclass
from pathlib import Path

EARTH_RADIUS_KM = 6371.0


@dataclass
class Point:
    """A position, in degrees, and its time in seconds."""

    latitude: float
    longitude: float
    time: float


def distance(a: Point, b: Point) -> float:
    """Kilometres between two points along a great circle."""
    phi_a, phi_b = math.radians(a.latitude), math.radians(b.latitude)
    delta_phi = phi_b - phi_a
    delta_lambda = math.radians(b.longitude - a.longitude)
    h = math.sin(delta_phi / 2) ** 2 + math.cos(phi_a) * math.cos(phi_b) * math.sin(delta_lambda / 2) ** 2
    return 2 * EARTH_RADIUS_KM * math.asin(math.sqrt(h))


''',
    '''def read_track(path: Path) -> list[Point]:
    """Reads a CSV file with the columns latitude, longitude and time."""
    with path.open(newline="") as file:
        rows = csv.DictReader(file)
        return [Point(float(row["latitude"]), float(row["longitude"]), float(row["time"])) for row in rows]


def write_track(path: Path, points: list[Point]) -> None:
    """Writes what read_track reads."""
''',
)
PROSE = (
    """# Keeping time in a small observatory

An observatory needs two clocks. One shows the time of day and is set by radio; the other follows the stars and gains
nearly four minutes a day on the first. Visitors ask why the second clock is wrong. It is not: it tells which part of
the sky is overhead, and a telescope is pointed by it.

The clocks are compared every evening. The difference is written into a book, with the temperature of the room and the
name of whoever looked. Over a winter the book shows how the pendulum answers to the cold, and a clock whose errors are
known is as good as one that has none.

""",
    """## Before the first night

Open the roof an hour before it gets dark, so that the air inside becomes as cold as the air outside. Warm air that
rises past the mirror makes the stars boil, and no lens can repair that. Check that the cables hang free and that the
counterweight is locked.

""",
)
HARBOUR = (
    "The harbour of Sundholm has three quays. The north quay takes timber, the south quay takes fish, and the middle \
quay belongs to the ferry, which leaves at ten minutes past every hour from April to October.\n"
)
ECHO = (
    "Boats longer than twelve metres tie up outside the mole and send their papers ashore. The harbour master, who \
also keeps the lamp, reads them in the order of arrival and paints a number on a board beside the stairs.\n",
    HARBOUR,
)
NAMES = ("Alder", "Birch", "Cedar", "Elm", "Fir", "Hazel", "Juniper", "Larch", "Maple", "Oak", "Pine", "Rowan")
KINDS = ("code", "json", "table", "prose", "echo")
LENGTHS = ("short", "long")


def prompt(kind: str, length: str) -> str:
    """Returns the prompt of one of `KINDS` in one of `LENGTHS`."""
    short = length == "short"
    if kind in ("json", "table"):
        return (json_records if kind == "json" else table_rows)(stations(4 if short else 12))
    if kind == "echo":
        given = ECHO[-1] if short else "".join(ECHO)
        return f"Original:\n\n{given}\nCopy, word for word:\n\n{' '.join(given.split()[:5])}"
    parts = CODE if kind == "code" else PROSE
    return parts[-1] if short else "".join(parts)


def stations(count: int) -> list[dict[str, Any]]:
    """Makes records with a regular part and an irregular part."""
    return [
        {"id": 101 + i, "station": NAMES[i], "height_m": 120 + 37 * i % 91, "ok": i % 3 != 1, "rain_mm": 7 * i % 11 / 2}
        for i in range(count)
    ]


def json_records(records: Sequence[dict[str, Any]]) -> str:
    """Formats the records as an unfinished list in JSON."""
    return json.dumps(records, indent=2).removesuffix("\n]") + ",\n"


def table_rows(records: Sequence[dict[str, Any]]) -> str:
    """Formats the records as an unfinished table in Markdown."""
    heads = list(records[0])
    lines = [heads, ["---"] * len(heads), *([str(value) for value in record.values()] for record in records)]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


class Check(NamedTuple):
    """A question with a test of its answer."""

    name: str
    question: str
    passes: Callable[[str], bool]


def is_number(wanted: str) -> Callable[[str], bool]:
    """Returns a test: the first number after the last "Answer:" is `wanted`. `1/4` and `0.25` are the same."""

    def passes(text: str) -> bool:
        found = re.search(r"-?\d+(?:\.\d+|/[1-9]\d*)?", last_answer(text).replace(",", ""))
        return found is not None and Fraction(found[0]) == Fraction(wanted)

    return passes


def is_word(wanted: str) -> Callable[[str], bool]:
    """Returns a test: the first word after the last "Answer:" is `wanted`."""

    def passes(text: str) -> bool:
        return re.findall(r"[a-z]+", last_answer(text).lower())[:1] == [wanted]

    return passes


def last_answer(text: str) -> str:
    """Returns the rest of the line after the last "Answer:", or an empty text."""
    _, found, rest = text.rpartition("Answer:")
    return rest.strip().partition("\n")[0] if found else ""


class Page(HTMLParser):
    """Checks whether the tags of a page are nested correctly."""

    EMPTY = frozenset(("base", "br", "col", "hr", "img", "input", "link", "meta", "source", "wbr"))
    MAY_STAY_OPEN = frozenset(("p", "li", "dt", "dd", "tr", "td", "th", "thead", "tbody", "tfoot", "option"))

    def __init__(self) -> None:
        super().__init__()
        self.seen: set[str] = set()
        self.open: list[str] = []
        self.broken = False

    def handle_starttag(self, tag: str, attrs: Sequence[tuple[str, str | None]]) -> None:
        """Opens an element, unless its kind has no content."""
        self.seen.add(tag)
        if tag not in self.EMPTY:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: Sequence[tuple[str, str | None]]) -> None:
        """Ignores elements such as `<br/>`, which have no content."""
        self.seen.add(tag)

    def handle_endtag(self, tag: str) -> None:
        """Closes an element and those inside it that need no end tag."""
        while self.open and self.open[-1] != tag and self.open[-1] in self.MAY_STAY_OPEN:
            self.open.pop()
        self.broken |= not self.open or self.open.pop() != tag


def is_page(text: str) -> bool:
    """Tells whether a text holds one whole HTML page with a title and a table, nested correctly."""
    found = re.search(r"(?:<!doctype html[^>]*>\s*)?<html.*</html>", text, re.IGNORECASE | re.DOTALL)
    if found is None:
        return False
    page = Page()
    page.feed(found[0])
    page.close()
    return not page.broken and not page.open and {"head", "title", "body", "table", "tr", "td"} <= page.seen


LAST_LINE = ' End with one line of the form "Answer: ...".'
NUMBERS = {
    "rolls": ("A baker bakes 7 trays of 12 rolls, sells 58 rolls and packs the rest 13 to a bag. How many bags?", "2"),
    "train": ("A train drives 150 km at 60 km/h. How many minutes does that take?", "150"),
    "stamps": ("Mia has three times as many stamps as Ben; together they have 96. How many has Mia?", "72"),
    "jacket": ("A jacket costs 80. The price falls by 25 %, then by another 10 %. What does it cost then?", "54"),
    "pump": ("A pump moves 18 litres in 4 minutes. How many litres does it move in 14 minutes?", "63"),
    "power": ("What is the remainder of 7 to the power 100 divided by 5?", "1"),
    "divisors": ("What is the sum of all positive divisors of 360?", "1170"),
    "books": ("In how many ways can 4 different books stand in a row if two given ones stand side by side?", "12"),
    "roots": ("By how much is the square of the larger root of x^2 - 11x + 24 above that of the smaller?", "55"),
    "dice": ("What is the probability that two dice add up to 9? Answer with a fraction.", "1/9"),
    "bayes": (
        "One person in 100 has an illness. A test finds it in 90 % of those who have it, and wrongly in 5 % of those "
        "who do not. Somebody tests positive. How likely is the illness, in whole percent?",
        "15",
    ),
}
CHECKS = (
    *(Check(name, question + LAST_LINE, is_number(answer)) for name, (question, answer) in NUMBERS.items()),
    Check(
        "knights",
        "Knights always tell the truth, knaves always lie. A says: we are both knaves. What is B, a knight or a knave?"
        + LAST_LINE,
        is_word("knight"),
    ),
    Check(
        "page",
        "Write one complete HTML page with a title, a style element and a table of the four seasons and their months.",
        is_page,
    ),
)
