"""Byte-level BPE with the pre-tokenizer of DeepSeek, run by the `tokenizers` library."""

from typing import Final

import tokenizers
from tokenizers import AddedToken, Regex, models, pre_tokenizers

from ds4py.errors import FormatError
from ds4py.tokenizer.vocabulary import Vocabulary

PRE: Final = "tokenizer.ggml.pre"

NAMES: Final = ("joyai-llm", "deepseek-v3")
"""Values of `tokenizer.ggml.pre` that select the splits below."""

SPLITS: Final = (
    r"\p{N}{1,3}",
    "[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+",
    r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+"""
    r"|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+"
    r"| ?[\p{P}\p{S}]+[\r\n]*"
    r"|\s*[\r\n]+"
    r"|\s+(?!\S)"
    r"|\s+",
)
"""Regular expressions that split a text. Each is applied to the pieces that the one before it made."""

LONG: Final = 1 << 14
"""Texts of at least this many characters are encoded without the GIL."""


class Encoder:
    """Converts text to ids. Added tokens are cut out of the text first, or all of it is taken as plain text."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        model = models.BPE(vocab=vocabulary.ids, merges=vocabulary.merges)
        # Two tokenizers of one model, so that no call has to switch the added tokens on or off: threads may share both.
        self._plain = tokenizers.Tokenizer(model)
        self._plain.pre_tokenizer = pre_tokenizer()
        self._parsing = tokenizers.Tokenizer(model)
        self._parsing.pre_tokenizer = pre_tokenizer()
        self._parsing.add_tokens([AddedToken(token, normalized=False) for token in vocabulary.added()])

    def encode(self, text: str, parse_special: bool) -> list[int]:
        """Returns the ids of a text without lone surrogates."""
        chosen = self._parsing if parse_special else self._plain
        if len(text) < LONG:
            return chosen.encode(text, add_special_tokens=False).ids
        # Only the library's batch calls release the GIL.
        return chosen.encode_batch_fast([text], add_special_tokens=False)[0].ids


def pre_tokenizer() -> pre_tokenizers.PreTokenizer:
    """Returns the pre-tokenizer: the three splits, then the mapping of bytes to the byte alphabet."""
    splits: list[pre_tokenizers.PreTokenizer] = [pre_tokenizers.Split(Regex(rule), "isolated") for rule in SPLITS]
    return pre_tokenizers.Sequence([*splits, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])


def check_pre(name: str | None) -> None:
    """Raises FormatError for a pre-tokenizer whose rules are not `SPLITS`."""
    if name not in NAMES:
        found = "nothing" if name is None else repr(name)
        wanted = " or ".join(repr(each) for each in NAMES)
        raise FormatError(f"{PRE}: found {found}, wanted {wanted}; other splits would give other tokens")
