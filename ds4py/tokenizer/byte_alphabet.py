"""The byte alphabet of byte-level BPE: each of the 256 bytes is written as one printable character.

Printable Latin-1 bytes stand for themselves; the others, in order, take the characters from U+0100 on.
"""

from typing import Final

PRINTABLE: Final = (*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100))
"""Bytes that are written as the Latin-1 character of the same number."""


def alphabet() -> dict[int, str]:
    """Returns the character of each byte."""
    others = (byte for byte in range(256) if byte not in PRINTABLE)
    table = {byte: chr(byte) for byte in PRINTABLE}
    table.update({byte: chr(0x100 + place) for place, byte in enumerate(others)})
    return table


CHARACTER: Final = alphabet()
"""The character of each byte."""

BYTE: Final = {character: byte for byte, character in CHARACTER.items()}
"""The byte of each character."""

UTF8_BYTES: Final = (*range(0xC0), *range(0xC2, 0xF5))
"""The bytes that occur in valid UTF-8; a vocabulary needs a token for each."""


def to_bytes(token: str) -> bytes:
    """Returns the bytes of a token. A token with characters outside the alphabet is encoded as UTF-8."""
    try:
        return bytes(BYTE[character] for character in token)
    except KeyError:
        return token.encode()
