"""The tokenizer of one GGUF file."""

from collections.abc import Iterable, Mapping

from ds4py.errors import FormatError, RequestError
from ds4py.tokenizer.encoder import Encoder, check_pre
from ds4py.tokenizer.metadata import ADVICE, Metadata
from ds4py.tokenizer.stream import StreamDecoder
from ds4py.tokenizer.vocabulary import ADDED, TOKENS, TokenType, Vocabulary

MODEL = "tokenizer.ggml.model"
BOS = "tokenizer.ggml.bos_token_id"
EOS = "tokenizer.ggml.eos_token_id"
PAD = "tokenizer.ggml.padding_token_id"
MASK = "tokenizer.ggml.mask_token_id"
STOPS = (EOS, "tokenizer.ggml.eot_token_id", "tokenizer.ggml.eom_token_id")
ADD_BOS = "tokenizer.ggml.add_bos_token"
TEMPLATE = "tokenizer.chat_template"

NO_VOCABULARY = (None, "none", "no_vocab")
"""Values of `tokenizer.ggml.model` in files that carry no vocabulary."""


class Tokenizer:
    """Converts text to token ids and back. `from_metadata` makes one; threads may share it.

    A file without a vocabulary gives a tokenizer that handles ids only: `encode` raises
    RequestError, and a token's text is its number, as in `<17>`.
    """

    def __init__(self, metadata: Metadata, vocabulary: Vocabulary | None, vocab_size: int) -> None:
        self._vocabulary = vocabulary
        self._encoder = None if vocabulary is None else Encoder(vocabulary)
        self._size = vocab_size
        self._spelled: dict[int, bytes] = {}  # bytes of the tokens that were decoded so far
        self._bos = metadata.token_id(BOS, vocab_size)
        self._eos = metadata.token_id(EOS, vocab_size)
        self._pad = metadata.token_id(PAD, vocab_size)
        self._mask = metadata.token_id(MASK, vocab_size)
        stops = (metadata.token_id(key, vocab_size) for key in STOPS)
        self._stops = frozenset(token for token in stops if token is not None)
        self._add_bos = metadata.flag(ADD_BOS) or False
        self._template = metadata.text(TEMPLATE)
        if self._add_bos and self._bos is None:
            raise FormatError(f"{ADD_BOS}: asks for a begin-of-sequence token, but {BOS} is missing; {ADVICE}")

    @classmethod
    def from_metadata(cls, metadata: Mapping[str, object], *, vocab_size: int | None = None) -> "Tokenizer":
        """Builds the tokenizer from a file's keys.

        `vocab_size` is the number of rows of the model's embedding. It is needed if the file has no
        vocabulary, and checked against the token list if it has one. Raises FormatError, beginning with
        the key, for data that is missing, damaged or of a tokenizer other than DeepSeek's.
        """
        keys = Metadata(metadata)
        vocabulary = read_vocabulary(keys)
        if vocabulary is None:
            if vocab_size is None:
                raise FormatError(f"{TOKENS}: the file carries no vocabulary, and its size is not known from elsewhere")
            return cls(keys, None, vocab_size)
        count = len(vocabulary.tokens)
        if vocab_size not in (None, count):
            raise FormatError(f"{TOKENS}: {count} tokens, but the model has rows for {vocab_size}; {ADVICE}")
        return cls(keys, vocabulary, count)

    def encode(self, text: str, *, add_bos: bool | None = None, parse_special: bool = True) -> list[int]:
        """Returns the ids of a text.

        `add_bos` puts the begin-of-sequence token first; None follows the file's setting.

        `parse_special` turns the text of added tokens (`<｜User｜>`, `<think>`, ...) into those tokens.
        When it is False, no text becomes a CONTROL or USER_DEFINED token, though some programs always
        parse the latter. `<think>` and `｜DSML｜` are USER_DEFINED and structure a conversation just as
        the role markers do, so text from outside must not be able to produce them.

        Raises RequestError if the file has no vocabulary, if it names no begin-of-sequence token to add,
        and for lone surrogates, which cannot be encoded.
        """
        if self._encoder is None:
            raise RequestError(
                f"cannot encode text: this file carries no vocabulary ({MODEL}); give token ids (--prompt-ids)"
            )
        check_text(text)
        wanted = self._add_bos if add_bos is None else add_bos
        return self._prefix(wanted) + self._encoder.encode(text, parse_special)

    def decode(self, ids: Iterable[int], *, skip_special: bool = False) -> str:
        """Returns the text of ids. `skip_special` leaves control tokens out. Invalid UTF-8 becomes U+FFFD.

        Raises RequestError for an id outside the vocabulary.
        """
        return (self._without_special(ids) if skip_special else self._bytes(ids)).decode("utf-8", "replace")

    def detokenizer(self, skip_special: bool = False) -> StreamDecoder:
        """Returns a decoder for ids that arrive over time, with the same result as `decode`."""
        return StreamDecoder(self._without_special if skip_special else self._bytes)

    def token_bytes(self, token: int) -> bytes:
        """Returns the bytes of one token. Raises RequestError for an id outside the vocabulary."""
        if (found := self._spelled.get(token)) is None:
            self._check(token)
            found = f"<{token}>".encode() if self._vocabulary is None else self._vocabulary.token_bytes(token)
            self._spelled[token] = found
        return found

    def token_id(self, text: str) -> int | None:
        """Returns the id of the added token (control or user-defined) with this text, or None if there is none."""
        token = None if self._vocabulary is None else self._vocabulary.ids.get(text)
        return token if token is not None and self._type(token) in ADDED else None

    def is_special(self, token: int) -> bool:
        """Returns whether an id is a control token by `tokenizer.ggml.token_type`, and so not part of a text.

        Raises RequestError for an id outside the vocabulary.
        """
        self._check(token)
        return self._type(token) in (TokenType.CONTROL, TokenType.UNKNOWN)

    def is_text(self, token: int) -> bool:
        """Returns whether an id stands for text: it is neither a control token nor an unused one.

        Raises RequestError for an id outside the vocabulary.
        """
        return not self.is_special(token) and self._type(token) != TokenType.UNUSED

    @property
    def has_vocabulary(self) -> bool:
        """Whether text can be encoded."""
        return self._vocabulary is not None

    @property
    def vocab_size(self) -> int:
        """Number of tokens: ids are in [0, vocab_size)."""
        return self._size

    @property
    def bos_id(self) -> int | None:
        """The begin-of-sequence token, where the file names one."""
        return self._bos

    @property
    def eos_id(self) -> int | None:
        """The end-of-sequence token, where the file names one."""
        return self._eos

    @property
    def pad_id(self) -> int | None:
        """The padding token, where the file names one."""
        return self._pad

    @property
    def mask_id(self) -> int | None:
        """The noise token of a drafter, where the file names one."""
        return self._mask

    @property
    def stop_ids(self) -> frozenset[int]:
        """Tokens at which generation ends: the file's ends of sequence, of turn and of message."""
        return self._stops

    @property
    def add_bos(self) -> bool:
        """Whether the file asks for the begin-of-sequence token before plain text."""
        return self._add_bos

    @property
    def chat_template(self) -> str | None:
        """The Jinja source of the file's chat template, where it carries one."""
        return self._template

    def _prefix(self, add_bos: bool) -> list[int]:
        if not add_bos:
            return []
        if self._bos is None:
            raise RequestError(f"add_bos: this file names no begin-of-sequence token ({BOS}); encode without it")
        return [self._bos]

    def _bytes(self, ids: Iterable[int]) -> bytes:
        return b"".join(map(self.token_bytes, ids))

    def _without_special(self, ids: Iterable[int]) -> bytes:
        return self._bytes(token for token in ids if not self.is_special(token))

    def _type(self, token: int) -> TokenType:
        return TokenType.NORMAL if self._vocabulary is None else self._vocabulary.types[token]

    def _check(self, token: int) -> None:
        if not 0 <= token < self._size:
            raise RequestError(f"token {token} is outside the vocabulary: ids are 0 to {self._size - 1}")


def read_vocabulary(keys: Metadata) -> Vocabulary | None:
    """Returns the file's vocabulary, or None if it has none. Raises FormatError for one that is not DeepSeek's."""
    model = keys.text(MODEL)
    if model is None and keys.strings(TOKENS):
        raise FormatError(f"{MODEL}: missing, but {TOKENS} is there; {ADVICE}")
    if model in NO_VOCABULARY:
        return None
    if model != "gpt2":
        raise FormatError(f"{MODEL}: found {model!r}, wanted 'gpt2' (byte-level BPE) or 'none'; not a DeepSeek-V4 file")
    vocabulary = Vocabulary.read(keys)
    if vocabulary is not None:
        check_pre(keys.text("tokenizer.ggml.pre"))
    return vocabulary


def check_text(text: str) -> None:
    """Raises RequestError for a text that cannot be encoded as UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        found = f"U+{ord(text[error.start]):04X}"
        raise RequestError(
            f"the text has a lone surrogate ({found}) at character {error.start}: decode it properly"
        ) from None
