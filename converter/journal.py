"""Records which tensors of an unfinished run are complete, in a file beside the output.

A line says that a tensor is complete. It is written only after the bytes of the tensor have been forced to the disk. So
a line is true even after the machine has crashed.
"""

from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path

SYNC_BYTES = 256 << 20
"""Bytes that are written before the next flush."""


class Journal:
    """The complete tensors of one file, by number. Runs that would write other bytes have another `fingerprint`."""

    def __init__(self, path: Path, fingerprint: str, fd: int) -> None:
        self.path, self._fd = path, fd
        self._pending: list[int] = []
        self._bytes = 0
        with path.open("w", encoding="utf-8") as file:
            file.write(json.dumps({"fingerprint": fingerprint}) + "\n")

    def done(self, number: int, nbytes: int) -> None:
        """Records that the bytes of a tensor have been written."""
        self._pending.append(number)
        self._bytes += nbytes
        if self._bytes >= SYNC_BYTES:
            self.flush()

    def flush(self) -> None:
        """Forces the written bytes to the disk, and then writes the lines of their tensors."""
        if not self._pending:
            return
        os.fsync(self._fd)
        with self.path.open("a", encoding="utf-8") as file:
            file.writelines(json.dumps({"done": number}) + "\n" for number in self._pending)
            file.flush()
            os.fsync(file.fileno())
        self._pending, self._bytes = [], 0


def read(path: Path, fingerprint: str) -> set[int]:
    """Returns the complete tensors of an earlier run with this fingerprint. The set is empty if there was none."""
    done: set[int] = set()
    # A crash may leave a broken line at the end. Reading stops there.
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError), path.open(encoding="utf-8") as file:
        if json.loads(file.readline())["fingerprint"] != fingerprint:
            return set()
        for line in file:
            done.add(json.loads(line)["done"])
    return done
