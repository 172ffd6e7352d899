"""Grammars by llguidance, which knows for every state the tokens of a vocabulary that may follow."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakKeyDictionary, ref

import numpy as np

from ds4py.errors import RequestError
from ds4py.grammar.base import Mask

if TYPE_CHECKING:
    from llguidance import LLMatcher, LLTokenizer

    from ds4py.tokenizer import Tokenizer

SPACE: Final = r"[\x20\x0A\x0D\x09]{1,40}"
"""White space between JSON's parts: enough for the usual layouts, and no way to go on with it for ever."""

NO_TEXT: Final = {"NoExtensionBias": "no text keeps to it"}
"""Messages of llguidance that need other words, and these words."""

_TOKENIZERS: WeakKeyDictionary[Tokenizer, LLTokenizer] = WeakKeyDictionary()
"""Made once for each vocabulary: it takes most of a second for a large one."""


class Grammar:
    """A grammar over a tokenizer's text; a `Constraint`.

    `source` is llguidance's own form of a grammar, `what` its name in errors. Raises RequestError for one that is wrong
    or too complex, for a tokenizer without a vocabulary, and where llguidance is not installed.
    """

    def __init__(self, tokenizer: Tokenizer, source: str, what: str) -> None:
        self._first = library().LLMatcher(vocabulary(tokenizer), source, log_level=0)
        self._tokenizer = tokenizer
        self._what = what
        check(self._first, what)

    def start(self) -> GrammarMatcher:
        """A matcher at the beginning."""
        return GrammarMatcher(self._first.deep_copy(), self._tokenizer, self._what)


class GrammarMatcher:
    """The state of a generation in a `Grammar`. Raises RequestError where a state is too complex."""

    def __init__(self, matcher: LLMatcher, tokenizer: Tokenizer, what: str) -> None:
        self._matcher = matcher
        self._tokenizer = tokenizer  # which the matcher asks, and does not keep
        self._what = what
        self._ended = 0  # tokens since the text's end, which llguidance does not count

    def mask(self) -> Mask | None:
        """Returns the tokens that may follow; None after the end, where the text is not shown."""
        if self._ended:
            return None
        mask = np.frombuffer(self._matcher.compute_bitmask(), np.uint8)
        check(self._matcher, self._what)
        return mask

    def advance(self, token: int) -> None:
        """Appends a token."""
        if self._ended or token in self._tokenizer.stop_ids:
            self._ended += 1
        else:
            self._matcher.consume_token(token)
            check(self._matcher, self._what)

    def rollback(self, count: int) -> None:
        """Takes back the last `count` tokens."""
        behind = min(count, self._ended)
        self._ended -= behind
        if count > behind:
            self._matcher.rollback(count - behind)
            check(self._matcher, self._what)

    @property
    def complete(self) -> bool:
        """Whether nothing can follow."""
        return self._ended > 0 or bool(self._matcher.is_stopped())


class VocabularyAdapter:
    """Adapts a tokenizer to the interface that llguidance reads."""

    is_tokenizer_wrapper = True

    def __init__(self, tokenizer: Tokenizer) -> None:
        stops = sorted(tokenizer.stop_ids)
        if not tokenizer.has_vocabulary or not stops:
            raise RequestError(
                "a grammar needs a vocabulary and an end token, which this file lacks: give no constraint"
            )
        ids = range(tokenizer.vocab_size)
        self.eos_token_id = stops[0]
        self.bos_token_id = tokenizer.bos_id
        self.tokens = [tokenizer.token_bytes(token) for token in ids]
        self.special_token_ids = [token for token in ids if not tokenizer.is_text(token)]
        self._tokenizer = ref(tokenizer)  # llguidance's part is no garbage that Python could collect

    def __call__(self, text: str) -> list[int]:
        tokenizer = self._tokenizer()
        assert tokenizer is not None
        return tokenizer.encode(text, add_bos=False, parse_special=False)


def library() -> Any:
    """Imports llguidance. Raises RequestError where it is not installed."""
    try:
        import llguidance
    except ImportError:
        raise RequestError("grammars need llguidance, which is missing: pip install 'ds4py[server]'") from None
    return llguidance


def vocabulary(tokenizer: Tokenizer) -> LLTokenizer:
    """The tokenizer as llguidance knows it."""
    if tokenizer not in _TOKENIZERS:
        words = VocabularyAdapter(tokenizer)
        _TOKENIZERS[tokenizer] = library().LLTokenizer(words, eos_token=sorted(tokenizer.stop_ids))
    return _TOKENIZERS[tokenizer]


def check(matcher: LLMatcher, what: str) -> None:
    """Raises RequestError where the matcher has failed."""
    if matcher.is_error():
        reason = matcher.get_error().partition("\n")[0]
        reason = NO_TEXT.get(reason, reason)
        raise RequestError(f"{what}: {reason}")


def json_object(tokenizer: Tokenizer) -> Grammar:
    """Any JSON object. Raises as `Grammar`."""
    return json_schema(tokenizer, {"type": "object"}, what="json_object")


def json_schema(tokenizer: Tokenizer, schema: Mapping[str, object], *, what: str = "json_schema") -> Grammar:
    """JSON that a schema allows, its properties in the schema's order.

    Raises as `Grammar`, and RequestError for a keyword that cannot be enforced.
    """
    try:
        text = json.dumps(schema)
    except (TypeError, RecursionError) as error:
        raise RequestError(f"{what}: {error}") from None
    overrides = {"whitespace_pattern": SPACE}
    return Grammar(tokenizer, form(library().LLMatcher.grammar_from_json_schema, text, what, overrides=overrides), what)


def form(make: Callable[..., str], text: str, what: str, **options: object) -> str:
    """llguidance's form of a grammar. Raises RequestError."""
    try:
        return make(text, **options)
    except ValueError as error:  # of half a surrogate pair, too
        raise RequestError(f"{what}: {error}") from None


def regex(tokenizer: Tokenizer, pattern: str) -> Grammar:
    """Text that a regular expression matches as a whole, in the syntax of Rust's regex. Raises as `Grammar`."""
    return Grammar(tokenizer, form(library().LLMatcher.grammar_from_regex, pattern, "regex"), "regex")


def lark(tokenizer: Tokenizer, source: str, *, what: str = "grammar") -> Grammar:
    """Text of a context-free grammar in llguidance's dialect of Lark. Raises as `Grammar`."""
    return Grammar(tokenizer, form(library().LLMatcher.grammar_from_lark, source, what), what)
