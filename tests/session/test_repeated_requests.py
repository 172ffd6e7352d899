"""Many requests on one session, each ended in another way: the next one is as in a fresh session."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

import numpy as np
import pytest
from generating import VOCAB, ids_of

import ds4py
from ds4py import Engine, Sampling, Session

REQUESTS = 20


def requests() -> Iterator[tuple[list[int], dict[str, Any]]]:
    """Prompts and arguments of `generate`; every drafter, rule and kind of policy comes up."""
    rng = np.random.default_rng(6)
    for number in range(REQUESTS):
        prompt = rng.integers(3, VOCAB - 1, rng.integers(2, 40)).tolist()
        yield (
            prompt,
            {
                "sampling": Sampling(
                    temperature=float(number % 3) / 2,
                    top_k=int(rng.integers(0, 40)),
                    presence_penalty=float(number % 2),
                    seed=number,
                ),
                "draft": ("dspark", "lookup", "off")[number % 3],
                "accept": ("token", "block", "match")[number // 3 % 3],
                "draft_length": int(rng.integers(0, 9)),
                "max_tokens": 9,
            },
        )


def end_badly(session: Session, number: int) -> None:
    """Leaves something behind that the next request must not see."""
    if number % 4 == 0:
        list(islice(session.generate([5, 6, 7], max_tokens=20), 3))
    elif number % 4 == 1:
        session.anchor = 9
        session.draft()
        session.verify([8, 7, 6])
    elif number % 4 == 2:
        stream = session.generate([5, 6, 7], max_tokens=20)
        next(stream)
        session.cancel()
        with pytest.raises(ds4py.Cancelled):
            next(stream)
    else:
        with pytest.raises(ds4py.RequestError):
            session.generate([VOCAB])


def test_each_is_as_in_a_fresh_session(pair: Engine) -> None:
    with pair.session(context=128) as session:
        for number, (prompt, arguments) in enumerate(requests()):
            session.rewind(0)
            found = ids_of(list(session.generate(prompt, **arguments)))
            with pair.session(context=128) as fresh:
                assert found == ids_of(list(fresh.generate(prompt, **arguments))), f"request {number}"
            end_badly(session, number)
