"""Texts out of an R lazy-load database, without R.

The `.rdb` file is a run of records: a big-endian length of the unpacked data, then a compressed stream of R's XDR
serialisation. In that, a character vector is type 16, its count, and as many strings of type 9 with their lengths.
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
    """Every character vector with more than `least` elements, its elements joined as lines."""
    return ["\n".join(vector) for record in records(database) for vector in vectors(record) if len(vector) > least]


def records(database: bytes) -> Iterator[bytes]:
    """The unpacked records of the database."""
    place = 0
    while place + 8 <= len(database):
        unpacked = unpack(database, place)
        if unpacked is None:
            place += 1
        else:
            record, place = unpacked
            yield record


def unpack(database: bytes, place: int) -> tuple[bytes, int] | None:
    """The record at `place` and where the next begins, or None where no record begins."""
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
    """The character vectors of a record, found by their shape."""
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
    """`count` strings from `place` on and where they end, or None where something else stands there."""
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
