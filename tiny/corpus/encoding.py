"""Writes token streams to disk: one file for each part and domain, little-endian uint16."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from .. import tokenizer as tokenizers
from ..config import BOS, DOMAINS, EOS
from .documents import Settings, stored
from .sources import Progress
from .split import pieces

BATCH = 512
"""Pieces that are encoded at a time."""

Tokens = NDArray[np.uint16]


def train_tokenizer(work: Path, settings: Settings) -> None:
    """Trains the tokenizer on equal parts of the domains, and saves it into `data/`."""
    folder = work / "data"
    folder.mkdir(parents=True, exist_ok=True)
    texts = [text for domain in DOMAINS for text in sample(work, domain, settings)]
    tokenizers.save(tokenizers.train(texts, settings.vocabulary), folder)


def sample(work: Path, domain: str, settings: Settings) -> Iterator[str]:
    """Yields training pieces of one domain in random order, up to the wanted number of characters."""
    found = [piece for text in stored(work, "train", domain) for piece in pieces(text)]
    random.Random(f"{settings.seed} {domain}").shuffle(found)
    taken = 0
    for piece in found:
        if taken >= settings.sample:
            return
        taken += len(piece)
        yield piece


def encode(work: Path, settings: Settings, progress: Progress) -> None:
    """Writes `train_{domain}.bin`, `heldout_{domain}.bin` and their sizes into `data/data.json`."""
    tokenizer = tokenizers.load(work / "data")
    sizes: dict[str, dict[str, dict[str, float]]] = {}
    for place, domain in enumerate(DOMAINS):
        progress("encoding", place / len(DOMAINS))
        sizes[domain] = {part: encode_part(work, part, domain, tokenizer, settings.seed) for part in PARTS}
    (work / "data" / "data.json").write_text(json.dumps(sizes, indent=2) + "\n", encoding="utf-8")


PARTS = ("train", "heldout")


def encode_part(work: Path, part: str, domain: str, tokenizer: Tokenizer, seed: int) -> dict[str, float]:
    """Writes one stream. Returns its tokens, characters and characters per token."""
    texts = list(stored(work, part, domain))
    streams = list(piece_tokens(tokenizer, texts))
    if part == "train":
        random.Random(f"{seed} {domain}").shuffle(streams)
    tokens = np.concatenate(streams)
    tokens.astype("<u2").tofile(work / "data" / f"{part}_{domain}.bin")
    characters = sum(map(len, texts))
    return {"tokens": len(tokens), "characters": characters, "characters_per_token": characters / len(tokens)}


def piece_tokens(tokenizer: Tokenizer, texts: Iterable[str]) -> Iterator[Tokens]:
    """Yields the tokens of each piece, with BOS before it, and EOS behind the last piece of a document."""
    cut = [(piece, number == len(found)) for found in map(pieces, texts) for number, piece in enumerate(found, 1)]
    for start in range(0, len(cut), BATCH):
        batch = cut[start : start + BATCH]
        encoded = tokenizer.encode_batch_fast([piece for piece, _ in batch], add_special_tokens=False)
        for (_, last), each in zip(batch, encoded, strict=True):
            yield np.array([BOS, *each.ids, *([EOS] if last else [])], dtype=np.uint16)
