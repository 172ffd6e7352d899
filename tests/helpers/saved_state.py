"""Reads from a saved session the part of its state that later forwards can read."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np

from ds4py import _native

_HEADER = struct.Struct("<8sIIQQq4qQQQ")
_SLACK = 16  # rows a forward may write past the frontier


def visible_state(
    session: _native.Session, pair: tuple[_native.Model, _native.Drafter], path: Path
) -> dict[str, np.ndarray]:
    """Returns float32 [rows, size] by name: of rings what a forward at the frontier reads, and finished blocks."""
    session.save(str(path))
    data = path.read_bytes()
    head = _HEADER.unpack_from(data)
    position, _, projected, _, logits = *head[6:10], head[10]
    reader = _Reader(data[_HEADER.size + 4 * position + 4 * logits :])
    hp = pair[0].hyperparameters
    rows = _target_rows(reader, hp, position)
    rows.update(_drafter_rows(reader, hp, pair[1], position, projected))
    return rows


class _Reader:
    def __init__(self, data: bytes) -> None:
        self.values = np.frombuffer(data[: len(data) - len(data) % 4], np.float32)
        self.at = 0

    def table(self, rows: int, size: int) -> np.ndarray:
        found = self.values[self.at : self.at + rows * size].reshape(rows, size)
        self.at += rows * size
        return found


def _ring(table: np.ndarray, first: int, end: int) -> np.ndarray:
    return np.asarray(table[np.arange(max(first, 0), end) % len(table)])


def _target_rows(reader: _Reader, hp: _native.Hyperparameters, position: int) -> dict[str, np.ndarray]:
    rows, blocks = {}, []
    for layer, ratio in enumerate(hp.ratios):
        raw = reader.table(hp.window - 1 + _SLACK, hp.head_size)
        rows[f"raw {layer}"] = _ring(raw, position - hp.window + 1, position)
        for name, size in _compressors(hp, ratio):
            width = 2 * size if ratio == 4 else size
            first = (position // ratio - (ratio == 4)) * ratio
            for part in ("kv", "score"):
                carry = reader.table((7 if ratio == 4 else ratio - 1) + _SLACK, width)
                rows[f"{name} {part} {layer}"] = _ring(carry, first, position)
            blocks.append((f"{name} rows {layer}", size, ratio))
    for name, size, ratio in blocks:
        rows[name] = reader.table(position // ratio, size)
    return rows


def _compressors(hp: _native.Hyperparameters, ratio: int) -> list[tuple[str, int]]:
    main = [("compressor", hp.head_size)] if ratio else []
    return main + ([("indexer", hp.index_size)] if ratio == 4 else [])


def _drafter_rows(
    reader: _Reader, hp: _native.Hyperparameters, drafter: _native.Drafter, position: int, projected: int
) -> dict[str, np.ndarray]:
    capacity = hp.window + _SLACK
    features = reader.table(capacity, len(drafter.taps) * hp.hidden)
    rows = {"features": _ring(features, max(projected, position - hp.window), position)}
    for stage in range(drafter.stages):
        rows[f"context {stage}"] = _ring(reader.table(capacity, hp.head_size), position - hp.window, projected)
    return rows
