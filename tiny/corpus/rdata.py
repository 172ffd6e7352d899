"""Reads texts from an R lazy-load database, without R.

The `.rdb` file is a run of records. A record is the big-endian length of the unpacked data, and then a compressed
stream of R's XDR serialisation. In that stream, a character vector is type 16, its count, and as many strings of type 9
with their lengths.
"""

from __future__ import annotations

import bz2
import lzma
import struct
import zlib
from collections.abc import Iterator

VECTOR, STRING = 16, 9
LONGEST_VECTOR, LONGEST_STRING = 200_000, 10_000


def texts(database: bytes, least: int = 1000) -> list[str]:
    """Returns every character vector with more than `least` elements, with its elements joined as lines."""
    return ["\n".join(vector) for record in records(database) for vector in vectors(record) if len(vector) > least]


def records(database: bytes) -> Iterator[bytes]:
    """Yields the unpacked records of the database."""
    place = 0
    while place + 8 <= len(database):
        unpacked = unpack(database, place)
        if unpacked is None:
            place += 1
        else:
            record, place = unpacked
            yield record


def unpack(database: bytes, place: int) -> tuple[bytes, int] | None:
    """Returns the record at `place` and the place of the next one, or None if no record begins there."""
    (length,) = struct.unpack_from(">I", database, place)
    raw = [{"id": lzma.FILTER_LZMA2}]
    for skip, stream in (
        (4, zlib.decompressobj()),
        (5, bz2.BZ2Decompressor()),
        (5, lzma.LZMADecompressor(format=lzma.FORMAT_RAW, filters=raw)),
    ):
        try:
            record = stream.decompress(database[place + skip :])
        except (zlib.error, OSError, ValueError, lzma.LZMAError):
            continue
        if record and len(record) == length:
            return record, len(database) - len(stream.unused_data)
    return None


def vectors(record: bytes) -> Iterator[list[str]]:
    """Yields the character vectors of a record, found by their form."""
    place = 0
    while place + 8 <= len(record):
        kind, count = struct.unpack_from(">ii", record, place)
        read = strings(record, place + 8, count) if kind & 0xFF == VECTOR and 0 < count < LONGEST_VECTOR else None
        if read is None:
            place += 1
        else:
            vector, place = read
            yield vector


def strings(record: bytes, place: int, count: int) -> tuple[list[str], int] | None:
    """Returns `count` strings from `place` on and the place of their end, or None if they are not strings."""
    found = []
    for _ in range(count):
        if place + 8 > len(record):
            return None
        kind, length = struct.unpack_from(">ii", record, place)
        if kind & 0xFF != STRING or not -1 <= length <= LONGEST_STRING:
            return None
        place += 8
        length = max(length, 0)  # -1 is a missing value
        found.append(record[place : place + length].decode("utf-8", "replace"))
        place += length
    return found, place
