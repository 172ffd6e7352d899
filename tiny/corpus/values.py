"""Makes values that a reader of a document can learn to predict: counters, enumerations, dates, copies.

A field is made once for a document, has a state of its own, and is asked for one value for each record. Most values can
be predicted from earlier records. A small part (numbers, names) cannot, as in real data.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from .words import Words

Record = dict[str, Any]
Value = Callable[[Record], Any]
"""Makes the value of the next record, given the fields before it in that record."""


@dataclass(frozen=True)
class Maker:
    """The state that the makers of one document share."""

    rng: random.Random
    words: Words
    names: list[str] = field(default_factory=list)
    """The people of this document. The same few occur again."""

    def noun(self) -> str:
        """Draws a noun of the pool."""
        return self.rng.choice(self.words.nouns)

    def person(self) -> str:
        """Draws a person, often one that was named before."""
        if len(self.names) < 3 or self.rng.random() < 0.4:
            self.names.append(f"{self.rng.choice(self.words.first)} {self.rng.choice(self.words.last)}")
            return self.names[-1]
        return self.rng.choice(self.names)

    def phrase(self) -> str:
        """Draws two or three words."""
        lead = [self.rng.choice(self.words.qualifiers)] if self.rng.random() < 0.6 else []
        return " ".join([*lead, self.noun(), *([self.noun()] if self.rng.random() < 0.4 else [])])


def counter(make: Maker) -> Value:
    """Makes numbers that go up by a fixed step."""
    step = make.rng.choice([1, 1, 1, 1, 2, 5, 10])
    state = [make.rng.choice([1, 1, make.rng.randint(1, 99), make.rng.randint(100, 9000)]) - step]

    def value(_: Record) -> int:
        state[0] += step
        return state[0]

    return value


def code(make: Maker) -> Value:
    """Makes counted identifiers with a prefix, such as `ORD-0012`."""
    prefix = make.noun()[: make.rng.randint(2, 4)]
    prefix = prefix.upper() if make.rng.random() < 0.6 else prefix
    count, width, joint = counter(make), make.rng.choice([3, 4, 5]), make.rng.choice(["-", "-", "_", ""])
    return lambda record: f"{prefix}{joint}{count(record):0{width}d}"


def choice(make: Maker) -> Value:
    """Makes one of a few words. The first is the most common."""
    words = distinct(make, make.rng.randint(2, 5))
    weights = [2.0**-place for place in range(len(words))] if make.rng.random() < 0.7 else [1.0] * len(words)
    return lambda _: make.rng.choices(words, weights)[0]


def rotation(make: Maker) -> Value:
    """Makes a few words in turn."""
    words, state = distinct(make, make.rng.randint(2, 4)), [-1]

    def value(_: Record) -> str:
        state[0] += 1
        return words[state[0] % len(words)]

    return value


def distinct(make: Maker, count: int) -> list[str]:
    """Draws different words in one style of case."""
    source = make.rng.choice([make.words.nouns, make.words.qualifiers, make.words.qualifiers, make.words.places])
    style = make.rng.choice([str.lower, str.lower, str.title, str.upper])
    return [style(word) for word in make.rng.sample(source, count)]


def constant(make: Maker) -> Value:
    """Makes the same value in every record."""
    fixed = make.rng.choice([make.noun(), make.phrase(), make.rng.randint(1, 500), True, False, None])
    return lambda _: fixed


def rarely(make: Maker) -> Value:
    """Makes a word or number that changes now and then."""
    draw: Callable[[], Any] = make.noun if make.rng.random() < 0.6 else lambda: make.rng.randint(1, 40) * 10
    state = [draw()]

    def value(_: Record) -> Any:
        if make.rng.random() < 0.15:
            state[0] = draw()
        return state[0]

    return value


def date(make: Maker) -> Value:
    """Makes days that advance by a fixed or a small random step."""
    state = [datetime(make.rng.randint(2015, 2026), make.rng.randint(1, 12), make.rng.randint(1, 28))]
    step = make.rng.choice([0, 1, 1, 7])

    def value(_: Record) -> str:
        state[0] += timedelta(days=step or make.rng.randint(0, 3))
        return state[0].strftime("%Y-%m-%d")

    return value


def moment(make: Maker) -> Value:
    """Makes times of day that advance, in ISO form."""
    state = [datetime(make.rng.randint(2015, 2026), make.rng.randint(1, 12), make.rng.randint(1, 28))]
    state[0] += timedelta(minutes=make.rng.randint(0, 1439))
    step = make.rng.choice([0, 1, 5, 15, 60]) * 60
    shape = make.rng.choice(["%Y-%m-%dT%H:%M:%SZ", "%Y-%m-%dT%H:%M:%SZ", "%Y-%m-%d %H:%M:%S"])

    def value(_: Record) -> str:
        state[0] += timedelta(seconds=step or make.rng.randint(1, 90))
        return state[0].strftime(shape)

    return value


def flag(make: Maker) -> Value:
    """Makes true or false, one of them more often."""
    often = make.rng.choice([0.1, 0.3, 0.7, 0.9])
    return lambda _: make.rng.random() < often


def whole(make: Maker) -> Value:
    """Makes whole numbers of one size, which are often round."""
    unit, most = make.rng.choice([1, 1, 5, 10, 100]), make.rng.choice([5, 10, 20, 100])
    return lambda _: unit * make.rng.randint(0, most)


def decimal(make: Maker) -> Value:
    """Makes numbers around one size, with a fixed count of decimals."""
    places, size = make.rng.choice([1, 2, 2, 3]), make.rng.choice([1, 10, 100, 1000])
    return lambda _: round(make.rng.uniform(0.2, 1.0) * size, places)


def running(make: Maker) -> Value:
    """Makes a total that grows by one of a few amounts."""
    amounts = [make.rng.randint(1, 20) * make.rng.choice([1, 5, 10]) for _ in range(2)]
    state = [make.rng.randint(0, 200)]

    def value(_: Record) -> int:
        state[0] += make.rng.choice(amounts)
        return state[0]

    return value


def person(make: Maker) -> Value:
    """Makes names of people who occur again."""
    return lambda _: make.person()


def email(make: Maker) -> Value:
    """Makes an address of the person named before it in the record, or of one of the document's people."""
    place = f"{make.noun()}.{make.rng.choice(['com', 'org', 'net', 'example'])}"

    def value(record: Record) -> str:
        named = next((text for text in record.values() if text in make.names), None) if make.names else None
        return f"{(named or make.person()).lower().replace(' ', '.')}@{place}"

    return value


def title(make: Maker) -> Value:
    """Makes short phrases."""
    return lambda _: make.phrase().capitalize()


def slug(make: Maker) -> Value:
    """Makes the phrase of the same record in the style of a path, or a new one."""

    def value(record: Record) -> str:
        phrases = [text for text in record.values() if isinstance(text, str) and " " in text and text[0].isalpha()]
        return (phrases[0] if phrases else make.phrase()).lower().replace(" ", "-")

    return value


def link(make: Maker) -> Value:
    """Makes addresses under one root that end in the record's identifier."""
    root = make.rng.choice([f"/{make.noun()}/{make.noun()}", f"https://{make.noun()}.example.com/{make.noun()}s"])
    count = counter(make)
    return lambda record: f"{root}/{next(iter(record.values()), None) if whole_first(record) else count(record)}"


def whole_first(record: Record) -> bool:
    """Tells whether a record begins with a number that may serve as its identifier."""
    return type(next(iter(record.values()), None)) is int


def place(make: Maker) -> Value:
    """Makes names of cities."""
    cities = make.rng.sample(make.words.places, 6)
    return lambda _: make.rng.choice(cities)


def release(make: Maker) -> Value:
    """Makes version numbers that go up."""
    state = [make.rng.randint(0, 4), make.rng.randint(0, 12), 0]

    def value(_: Record) -> str:
        at = make.rng.choice([1, 2, 2, 2])
        state[at:] = [state[at] + 1, *([0] * (2 - at))]
        return ".".join(map(str, state))

    return value


SCALARS: tuple[tuple[Callable[[Maker], Value], str, int], ...] = (
    (counter, "id number index rank position", 6),
    (code, "code reference key id", 4),
    (choice, "status type kind state level category mode", 12),
    (rotation, "phase group side shift", 4),
    (constant, "source unit version scope", 6),
    (rarely, "region batch owner section", 5),
    (date, "date day due", 5),
    (moment, "at time timestamp updated_at", 5),
    (flag, "enabled active valid done", 7),
    (whole, "count size total limit quantity", 7),
    (decimal, "price score rate amount ratio", 6),
    (running, "total offset balance", 4),
    (person, "name author contact", 5),
    (email, "email", 3),
    (title, "title label description", 4),
    (slug, "slug name", 3),
    (link, "url path", 4),
    (place, "city location", 4),
    (release, "version release", 2),
)
"""The makers of single values, with the endings of keys that suit them and their weights."""
