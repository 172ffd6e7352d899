"""Makes the documents of the five domains from fetched sources and generators, and stores them as JSON lines."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from . import files, json_documents, table_documents
from .files import Entry
from .sources import Progress
from .split import Split, by_end, by_file
from .words import Words, pool


@dataclass(frozen=True)
class Settings:
    """The settings of the corpus. Sizes are in characters."""

    json: int = 12_000_000
    tables: int = 8_000_000
    heldout: int = 300_000
    """Held-out characters of each generated domain."""
    files_heldout: float = 0.04
    """Held-out share of the code and documentation files."""
    prose_heldout: float = 0.05
    """Held-out share of each book, at its end."""
    seed: int = 20
    vocabulary: int = 2048
    sample: int = 3_000_000
    """Characters of each domain that the tokenizer learns from."""


Maker = Callable[[random.Random, Words], str]
"""Makes one document."""

READERS = {"code": files.code, "docs": files.docs, "prose": files.prose}
"""The functions that read the domains which come from files."""


def write(work: Path, settings: Settings, progress: Progress) -> None:
    """Makes `documents/` and `licences.json` in the work folder from `sources/`. Raises SourceError."""
    entries: list[Entry] = []
    for place, (domain, read) in enumerate(READERS.items()):
        progress("reading the sources", place / len(READERS))
        texts, found = read(work / "sources")
        fraction = settings.prose_heldout if domain == "prose" else settings.files_heldout
        store(work, domain, (by_end if domain == "prose" else by_file)(texts, fraction))
        entries += found
    for place, domain in enumerate(("json", "tables")):
        progress("generating", place / 2)
        split = generated(domain, settings)
        store(work, domain, split)
        size = sum(map(len, split.train + split.heldout))
        entries.append({"domain": domain, "source": "generator", "version": "1", "licence": "MIT", "characters": size})
    (work / "licences.json").write_text(json.dumps(entries, indent=2) + "\n", encoding="utf-8")


def generated(domain: str, settings: Settings) -> Split:
    """Makes a generated domain. The held-out part has another seed and other words."""
    make = {"json": json_documents, "tables": table_documents}[domain].document
    size = {"json": settings.json, "tables": settings.tables}[domain]
    parts = [
        list(several(make, random.Random(f"{settings.seed} {domain} {heldout}"), pool(heldout), characters))
        for heldout, characters in ((False, size), (True, settings.heldout))
    ]
    return Split(*parts)


def several(make: Maker, rng: random.Random, words: Words, characters: int) -> Iterator[str]:
    """Yields generated documents until they have `characters` characters."""
    made = 0
    while made < characters:
        text = make(rng, words)
        made += len(text)
        yield text


def licences(work: Path) -> list[Entry]:
    """Returns every source with its version, licence and characters used."""
    found: list[Entry] = json.loads((work / "licences.json").read_text(encoding="utf-8"))
    return found


def store(work: Path, domain: str, split: Split) -> None:
    """Writes both parts of a domain, with one document a line as a JSON text."""
    folder = work / "documents"
    folder.mkdir(parents=True, exist_ok=True)
    for part, texts in (("train", split.train), ("heldout", split.heldout)):
        with open(folder / f"{part}_{domain}.jsonl", "w", encoding="utf-8") as file:
            file.writelines(json.dumps(text) + "\n" for text in texts)


def stored(work: Path, part: str, domain: str) -> Iterator[str]:
    """Yields the documents of a part ("train" or "heldout") of a domain."""
    with open(work / "documents" / f"{part}_{domain}.jsonl", encoding="utf-8") as file:
        for line in file:
            yield json.loads(line)
