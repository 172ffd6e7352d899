"""Remembers which tensors of an interrupted run are in the file, beside the file itself.

A line says that a tensor is done, and is written only after the tensor's bytes were forced to the disk, so a line is
true even after a crash of the machine.
"""

from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path

SYNC_BYTES = 256 << 20
"""Written bytes after which what is done is forced to the disk and noted."""


class Journal:
    """The finished tensors of one file, by number. `fingerprint` tells runs apart that would write other bytes."""

    def __init__(self, path: Path, fingerprint: str, fd: int) -> None:
        self.path, self._fd = path, fd
        self._pending: list[int] = []
        self._bytes = 0
        with path.open("w", encoding="utf-8") as file:
            file.write(json.dumps({"fingerprint": fingerprint}) + "\n")

    def done(self, number: int, nbytes: int) -> None:
        """A tensor's bytes have been written."""
        self._pending.append(number)
        self._bytes += nbytes
        if self._bytes >= SYNC_BYTES:
            self.flush()

    def flush(self) -> None:
        """Notes what has been done."""
        if not self._pending:
            return
        os.fsync(self._fd)
        with self.path.open("a", encoding="utf-8") as file:
            file.writelines(json.dumps({"done": number}) + "\n" for number in self._pending)
            file.flush()
            os.fsync(file.fileno())
        self._pending, self._bytes = [], 0


def read(path: Path, fingerprint: str) -> set[int]:
    """The finished tensors of an earlier run that would have written the same file; empty where there was none."""
    done: set[int] = set()
    # A line that was being written when the machine went down says nothing, and neither does what follows it.
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError), path.open(encoding="utf-8") as file:
        if json.loads(file.readline())["fingerprint"] != fingerprint:
            return set()
        for line in file:
            done.add(json.loads(line)["done"])
    return done
