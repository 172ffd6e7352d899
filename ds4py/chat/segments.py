"""A prompt in pieces: markers, which are tokens, and text, in which a marker's name stays text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from ds4py.chat.markers import DSML, END_THINK, THINK

IN_WORDS: Final = re.compile(f"({'|'.join(map(re.escape, (THINK, END_THINK, DSML)))})")


class Segment(NamedTuple):
    """A piece of the prompt.

    `is_template` pieces are markers, each to become the one token of that name. The others are text
    in which a marker's name stays text. They hold the layout's plain words, too (joins, effort, tags
    of tool results): those are no tokens of their own, and must be encoded along with what they touch.
    """

    text: str
    is_template: bool


def marked(words: str) -> Iterator[Segment]:
    """Yields the segments of trusted words (the layout's or the file's), in which a marker's name is the marker."""
    for place, part in enumerate(IN_WORDS.split(words)):
        yield Segment(part, place % 2 == 1)


def merge_plain(segments: Iterable[Segment]) -> list[Segment]:
    """Returns the segments with neighbouring plain ones merged, and without empty ones."""
    result: list[Segment] = []
    for segment in segments:
        if not segment.text:
            continue
        if result and not segment.is_template and not result[-1].is_template:
            result[-1] = Segment(result[-1].text + segment.text, False)
        else:
            result.append(segment)
    return result
