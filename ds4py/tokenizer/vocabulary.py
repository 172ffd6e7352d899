"""The vocabulary of a GGUF file, checked when it is read."""

from dataclasses import dataclass
from enum import IntEnum

from ds4py.errors import FormatError
from ds4py.tokenizer import byte_alphabet
from ds4py.tokenizer.metadata import ADVICE, Metadata

TOKENS = "tokenizer.ggml.tokens"
TYPES = "tokenizer.ggml.token_type"
MERGES = "tokenizer.ggml.merges"


class TokenType(IntEnum):
    """Kinds of tokens: the values of `tokenizer.ggml.token_type`."""

    NORMAL = 1
    UNKNOWN = 2
    CONTROL = 3
    USER_DEFINED = 4
    UNUSED = 5
    BYTE = 6


ADDED = frozenset({TokenType.UNKNOWN, TokenType.CONTROL, TokenType.USER_DEFINED})
"""Types of tokens that are cut out of raw text; their text is plain UTF-8, not written in the byte alphabet."""


@dataclass(frozen=True)
class Vocabulary:
    """Tokens by id with their types, and the merges (left, right) by rank."""

    tokens: list[str]
    types: list[TokenType]
    merges: list[tuple[str, str]]
    ids: dict[str, int]

    @classmethod
    def read(cls, metadata: Metadata) -> "Vocabulary | None":
        """Returns the vocabulary, or None if the file has no token list. Raises FormatError."""
        tokens = metadata.strings(TOKENS)
        if not tokens:
            return None
        ids = {token: place for place, token in enumerate(tokens)}
        if len(ids) != len(tokens):
            twice = next(token for place, token in enumerate(tokens) if ids[token] != place)
            raise FormatError(f"{TOKENS}: {twice!r} occurs more than once; {ADVICE}")
        check_bytes(ids)
        return cls(tokens, read_types(metadata, len(tokens)), read_merges(metadata, ids), ids)

    def added(self) -> list[str]:
        """Returns the tokens that are cut out of raw text before it is split."""
        return [token for token, kind in zip(self.tokens, self.types, strict=True) if kind in ADDED]

    def token_bytes(self, token: int) -> bytes:
        """Returns the bytes of a token, whose id must be in the vocabulary."""
        text, kind = self.tokens[token], self.types[token]
        if kind == TokenType.BYTE:
            return byte_token(text)
        return byte_alphabet.to_bytes(text) if kind == TokenType.NORMAL else text.encode()


def check_bytes(ids: dict[str, int]) -> None:
    """Raises FormatError unless every byte of UTF-8 has a token; the encoder would silently drop a byte without one."""
    missing = [byte for byte in byte_alphabet.UTF8_BYTES if byte_alphabet.CHARACTER[byte] not in ids]
    if missing:
        shown = ", ".join(f"0x{byte:02x}" for byte in missing[:4])
        raise FormatError(
            f"{TOKENS}: no token for {len(missing)} bytes ({shown}, ...); wanted byte-level BPE. {ADVICE}"
        )


def read_types(metadata: Metadata, count: int) -> list[TokenType]:
    """Reads the type of each token. Raises FormatError."""
    found = metadata.integers(TYPES)
    if found is None:
        raise FormatError(f"{TYPES}: missing; it says which of the {count} tokens are no plain text. {ADVICE}")
    if len(found) != count:
        raise FormatError(f"{TYPES}: found {len(found)} types for the {count} tokens of {TOKENS}; {ADVICE}")
    kinds = {int(kind): kind for kind in TokenType}
    for token, number in enumerate(found):
        if number not in kinds:
            raise FormatError(f"{TYPES}[{token}]: found {number}, wanted one of {sorted(kinds)}; {ADVICE}")
    return [kinds[number] for number in found]


def read_merges(metadata: Metadata, ids: dict[str, int]) -> list[tuple[str, str]]:
    """Reads the merges; each joins two known tokens into a third. Raises FormatError."""
    lines = metadata.strings(MERGES)
    if lines is None:
        raise FormatError(f"{MERGES}: missing, but {TOKENS} is there; {ADVICE}")
    merges = []
    for rank, line in enumerate(lines):
        left, space, right = line.partition(" ")
        if not space or left not in ids or right not in ids or left + right not in ids:
            raise FormatError(f"{MERGES}[{rank}]: {line!r} does not join two known tokens into a third; {ADVICE}")
        merges.append((left, right))
    return merges


def byte_token(text: str) -> bytes:
    """Returns the byte of a token of type BYTE, whose text looks like `<0x0A>`; any other text as UTF-8."""
    digits = text.removeprefix("<0x").removesuffix(">")
    try:
        return bytes.fromhex(digits) if len(text) == 6 and len(digits) == 2 else text.encode()
    except ValueError:
        return text.encode()
