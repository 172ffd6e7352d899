"""Draws random token ids to measure with."""

import random


def random_ids(vocab: int, count: int, *, seed: int) -> list[int]:
    """Draws ids from the whole vocabulary."""
    draw = random.Random(seed)
    return [draw.randrange(vocab) for _ in range(count)]


def verify_rows(vocab: int, count: int, skew: float, *, seed: int) -> list[int]:
    """Draws the ids of a verify's rows. A share `skew` of them repeats the row before.

    With random weights, tokens that differ choose experts by chance. Rows of real text share more experts, and a row
    that repeats the one before chooses nearly the same. The first n of more rows are the rows of a verify of n.
    """
    ids = random_ids(vocab, count, seed=seed)
    for i in range(1, count):
        if int(i * skew) > int((i - 1) * skew):
            ids[i] = ids[i - 1]
    return ids
