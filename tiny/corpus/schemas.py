"""Makes schemas: the keys of a document's records, and the makers of their values."""

from __future__ import annotations

import random
from dataclasses import dataclass

from .values import SCALARS, Maker, Record, Value, choice, counter, whole
from .words import Words

Schema = dict[str, Value]


@dataclass(frozen=True)
class Style:
    """The way in which one document writes its keys."""

    camel: bool
    bare: float
    """The share of keys that are an ending alone, such as `id`."""


def maker(rng: random.Random, words: Words) -> tuple[Maker, Style]:
    """Makes the shared state of a document's makers, and the style of the document."""
    return Maker(rng, words), Style(rng.random() < 0.35, rng.choice([0.1, 0.3, 0.5]))


def key(make: Maker, style: Style, endings: list[str]) -> str:
    """Makes a key `qualifier_noun_ending`, of which one part is enough."""
    rng = make.rng
    if endings and rng.random() < style.bare:
        return joined([rng.choice(endings)], style.camel)
    parts = [make.noun()]
    if rng.random() < 0.45:
        parts.insert(0, rng.choice(make.words.qualifiers))
    if endings and (len(parts) == 1 or rng.random() < 0.4):
        parts.append(rng.choice(endings))
    return joined(parts, style.camel)


def joined(parts: list[str], camel: bool) -> str:
    """Joins words to one key, in snake case or camel case."""
    parts = "_".join(parts).split("_")
    return parts[0] + "".join(map(str.title, parts[1:])) if camel else "_".join(parts)


def scalars(make: Maker, style: Style, count: int) -> Schema:
    """Makes `count` keys with single values. Three schemas in five begin with an identifier that counts up."""
    makers, endings, weights = zip(*SCALARS, strict=True)
    picked = make.rng.choices(range(len(makers)), weights, k=count)
    if make.rng.random() < 0.6:
        picked[0] = 0
    schema: Schema = {}
    for at in picked:
        name = unused(schema, make, style, endings[at].split())
        schema[name] = makers[at](make)
    return schema


def unused(schema: Schema, make: Maker, style: Style, endings: list[str]) -> str:
    """Makes a key that the schema does not have yet."""
    while (name := key(make, style, endings)) in schema:
        pass
    return name


def nested(make: Maker, style: Style, count: int, depth: int = 1) -> Schema:
    """Makes a schema in which some keys hold objects, lists of words or numbers, or lists of small objects."""
    schema = scalars(make, style, count)
    for _ in range(make.rng.choice([0, 1, 1, 2]) if depth else 0):
        name = unused(schema, make, style, [])
        schema[name] = make.rng.choice([child, child, tags, numbers, children])(make, style, depth)
    return schema


def child(make: Maker, style: Style, depth: int) -> Value:
    """Makes objects with the same keys every time."""
    schema = nested(make, style, make.rng.randint(2, 4), depth - 1)
    return lambda _: record(schema)


def children(make: Maker, style: Style, _: int) -> Value:
    """Makes lists of small objects with the same keys."""
    schema, most = scalars(make, style, make.rng.randint(2, 3)), make.rng.randint(1, 3)
    return lambda _: [record(schema) for _ in range(make.rng.randint(1, most))]


def tags(make: Maker, _: Style, __: int) -> Value:
    """Makes lists of a few words."""
    word, most = choice(make), make.rng.randint(1, 3)
    return lambda outer: list(dict.fromkeys(word(outer) for _ in range(make.rng.randint(1, most))))


def numbers(make: Maker, _: Style, __: int) -> Value:
    """Makes lists of numbers, always of the same length."""
    number, length = make.rng.choice([counter, whole])(make), make.rng.randint(2, 4)
    return lambda outer: [number(outer) for _ in range(length)]


def record(schema: Schema) -> Record:
    """Makes the next record."""
    made: Record = {}
    for name, value in schema.items():
        made[name] = value(made)
    return made
