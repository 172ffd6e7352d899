"""The prompts of the benches are what they say, and the checks of answers know right from wrong."""

from __future__ import annotations

import ast
import json
import math
from fractions import Fraction
from itertools import permutations, product

import pytest
from prompts import KINDS, LENGTHS, NUMBERS, is_number, is_page, is_word, prompt

pytestmark = pytest.mark.fast

PAGE = """Here it is:
```html
<!DOCTYPE html>
<html><head><meta charset="utf-8"><title>Seasons</title><style>td { color: red }</style></head>
<body><p>Four of them<table><tr><th>Name<th>Months<tr><td>Spring<td>March<br/></table></body></html>
```"""


@pytest.mark.parametrize("kind", KINDS)
def test_long_ones_are_longer(kind: str) -> None:
    short, long = (prompt(kind, length) for length in LENGTHS)
    assert 1.5 * len(short) < len(long)


def test_they_are_of_their_kind() -> None:
    for length in LENGTHS:
        ast.parse(prompt("code", length))
        assert len(json.loads(prompt("json", length).rstrip(",\n") + "]")) in (4, 12)
        assert {line.count("|") for line in prompt("table", length).splitlines()} == {6}
        given, begun = prompt("echo", length).removeprefix("Original:\n\n").split("\nCopy, word for word:\n\n")
        assert given.startswith(begun) and len(given) > 3 * len(begun)


def test_answers_are_those_of_a_computation() -> None:
    rolls = sum(product_ == 9 for product_ in map(sum, product(range(1, 7), repeat=2)))
    beside = sum(abs(row.index(0) - row.index(1)) == 1 for row in permutations(range(4)))
    computed = {
        "rolls": Fraction(7 * 12 - 58, 13),
        "train": Fraction(150 * 60, 60),
        "stamps": next(3 * ben for ben in range(97) if 4 * ben == 96),
        "jacket": 80 * Fraction(75, 100) * Fraction(90, 100),
        "pump": Fraction(18 * 14, 4),
        "power": pow(7, 100, 5),
        "divisors": sum(each for each in range(1, 361) if 360 % each == 0),
        "books": beside,
        "roots": max(r**2 for r in range(30) if r * r - 11 * r + 24 == 0) - 9,
        "dice": Fraction(rolls, 36),
        "bayes": math.floor(100 * Fraction(9, 1000) / (Fraction(9, 1000) + Fraction(99 * 5, 10000)) + Fraction(1, 2)),
    }
    assert {name: Fraction(answer) for name, (_, answer) in NUMBERS.items()} == computed


def test_knights() -> None:
    """Of the four worlds, one has A lying exactly where A is a knave."""
    worlds = [(a, b) for a, b in product((True, False), repeat=2) if a == (not a and not b)]
    assert worlds == [(False, True)]


@pytest.mark.parametrize(
    ("wanted", "answer", "right"),
    [
        ("1170", "Answer: **1,170**.", True),
        ("54", "So 60, then 54.\nAnswer: 54.00 euros", True),
        ("1/9", "Answer: 4/36", True),
        ("2", "Answer: 3\nNo, wait.\nAnswer: 2", True),
        ("2", "It is 2.", False),
        ("2", "Answer: 12", False),
        ("2", "Answer: 2/0", True),  # a fraction that is none is read as its first number
        ("2", "Answer: none", False),
    ],
)
def test_numbers_in_answers(wanted: str, answer: str, right: bool) -> None:
    assert is_number(wanted)(answer) is right


def test_words_in_answers() -> None:
    assert is_word("knight")("A lies.\nAnswer: Knight.")
    assert not is_word("knight")("Answer: knave, since A is no knight")
    assert not is_word("knight")("B is a knight")


def test_pages() -> None:
    assert is_page(PAGE)
    assert not is_page(PAGE.replace("</html>", ""))
    assert not is_page(PAGE.replace("</head>", ""))
    assert not is_page(PAGE.replace("</table></body>", "</body></table>"))
    assert not is_page(PAGE.replace("<title>Seasons</title>", ""))
    assert not is_page(PAGE.replace("<body>", "<body></div>"))
