"""Random token ids to measure with."""

import random


def random_ids(vocab: int, count: int, *, seed: int) -> list[int]:
    """Ids drawn from the whole vocabulary."""
    draw = random.Random(seed)
    return [draw.randrange(vocab) for _ in range(count)]


def verify_rows(vocab: int, count: int, skew: float, *, seed: int) -> list[int]:
    """Ids of rows that are verified, of which the share `skew` repeats the row before.

    Random weights send tokens that differ to experts like chance. Rows of real text share more: a row that repeats the
    one before it chooses much the same experts. The first n of more rows are the rows of a verify of n.
    """
    ids = random_ids(vocab, count, seed=seed)
    for i in range(1, count):
        if int(i * skew) > int((i - 1) * skew):
            ids[i] = ids[i - 1]
    return ids
