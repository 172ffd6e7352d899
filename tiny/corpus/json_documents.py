"""Generates JSON documents: arrays of records, JSON lines, configurations, API responses, logs and series.

Every document draws its own schema, so its keys can be predicted from its earlier records only.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any

from .schemas import Style, key, maker, nested, record, scalars
from .values import Maker, choice, counter, decimal, moment, title, whole
from .words import Words


def document(rng: random.Random, words: Words) -> str:
    """Makes one document, which ends with a line end."""
    make, style = maker(rng, words)
    (shape,) = rng.choices([form for form, _ in FORMS], [weight for _, weight in FORMS])
    return shape(make, style)


def written(make: Maker, value: Any) -> str:
    """Formats the value as a JSON text in one of the usual layouts."""
    layout: dict[str, Any] = make.rng.choice(
        [{"indent": 2}, {"indent": 2}, {"indent": 2}, {"indent": 4}, {}, {"separators": (",", ":")}]
    )
    return json.dumps(value, ensure_ascii=False, **layout) + "\n"


def records(make: Maker, style: Style) -> list[Any]:
    """Makes records of one schema: many short ones, or fewer long ones."""
    if make.rng.random() < 0.6:
        schema = scalars(make, style, make.rng.randint(2, 6))
        return [record(schema) for _ in range(make.rng.randint(6, 30))]
    schema = nested(make, style, make.rng.randint(4, 9))
    return [record(schema) for _ in range(make.rng.randint(3, 14))]


def array(make: Maker, style: Style) -> str:
    """Makes an array of records."""
    return written(make, records(make, style))


def response(make: Maker, style: Style) -> str:
    """Makes an API's answer: its subject, the records, and their place among all records."""
    rows, page = records(make, style), make.rng.randint(1, 9)
    head = record(scalars(make, style, make.rng.randint(1, 3)))
    foot = {"page": page, "pages": page + make.rng.randint(0, 9), "count": len(rows)}
    name = key(make, style, []) + "s"
    top = {**head, name: rows, **foot} if make.rng.random() < 0.5 else {"meta": {**head, **foot}, name: rows}
    return written(make, top)


def lines(make: Maker, style: Style) -> str:
    """Makes JSON lines."""
    compact: dict[str, Any] = make.rng.choice([{}, {}, {"separators": (",", ":")}])
    return "".join(json.dumps(row, ensure_ascii=False, **compact) + "\n" for row in records(make, style))


def log(make: Maker, style: Style) -> str:
    """Makes JSON lines as a service logs them: time, level, logger, message, and fields."""
    time, level, logger = moment(make), choice(make), choice(make)
    names = [key(make, style, [ending]) for ending in ("time", "level", "source", "message")]
    texts = [title(make)({}) for _ in range(make.rng.randint(2, 6))]
    schema = {
        names[0]: time,
        names[1]: level,
        names[2]: logger,
        names[3]: lambda _: make.rng.choice(texts),
        **scalars(make, style, make.rng.randint(1, 3)),
    }
    return "".join(json.dumps(record(schema)) + "\n" for _ in range(make.rng.randint(8, 40)))


def configuration(make: Maker, style: Style) -> str:
    """Makes sections of settings. Some sections are alike."""
    top: dict[str, Any] = record(scalars(make, style, make.rng.randint(1, 3)))
    for _ in range(make.rng.randint(2, 5)):
        schema = nested(make, style, make.rng.randint(2, 5))
        if make.rng.random() < 0.4:
            entries = {make.noun(): record(schema) for _ in range(make.rng.randint(2, 6))}
            top[key(make, style, []) + "s"] = entries
        else:
            top[key(make, style, ["config", "settings", "options"])] = record(schema)
    return written(make, top)


def keyed(make: Maker, style: Style) -> str:
    """Makes records by name instead of in an array."""
    number, lead = counter(make), make.noun()
    return written(make, {f"{lead}_{number({})}": row for row in records(make, style)})


def series(make: Maker, style: Style) -> str:
    """Makes columns of equal length."""
    length = make.rng.randint(6, 24)
    columns = {"time": moment(make), **{key(make, style, []): make.rng.choice([decimal, whole])(make) for _ in "ab"}}
    return written(make, {name: [value({}) for _ in range(length)] for name, value in columns.items()})


FORMS: tuple[tuple[Callable[[Maker, Style], str], int], ...] = (
    (array, 36),
    (response, 20),
    (lines, 14),
    (log, 8),
    (configuration, 12),
    (keyed, 7),
    (series, 3),
)
"""The forms of documents and their weights."""
