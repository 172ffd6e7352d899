"""Helpers of the generation tests: a prompt, its greedy continuation, and drafters that know it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from paths import GOLDEN

from ds4py import Piece, Sampling
from ds4py.speculative import ScriptedDrafter

GREEDY = Sampling(temperature=0)
VOCAB = 512
PROMPT: list[int] = np.load(GOLDEN / "target-golden.npz")["tokens"][:302].tolist()
CONTINUATION: list[int] = np.load(GOLDEN / "target-golden.npz")["greedy"][:60].tolist()
"""The tiny target's, by an independent implementation; no token comes twice in a row."""


def ids_of(pieces: Sequence[Piece]) -> list[int]:
    return [token for piece in pieces for token in piece.tokens]


def text_of(pieces: Sequence[Piece]) -> str:
    return "".join(piece.text for piece in pieces)


def oracle(right: int = 15, then: int = 0) -> ScriptedDrafter:
    """Proposes `right` tokens of the greedy continuation, then `then` others that are all wrong."""

    def script(history: np.ndarray) -> list[int]:
        at = len(history) - len(PROMPT)
        wrong = [(token + 1) % VOCAB for token in CONTINUATION[at + right : at + right + then]]
        return CONTINUATION[at : at + right] + wrong

    return ScriptedDrafter(script)
