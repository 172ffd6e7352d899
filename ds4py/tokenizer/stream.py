"""A decoder that turns tokens into text as they arrive."""

import codecs
from collections.abc import Callable, Iterable


class StreamDecoder:
    """Turns ids into text, in as many pushes as one likes.

    Tokens are bytes, and a character may be spread over several of them: what is not yet a whole
    character is held back until it is. The texts of all pushes and of `flush`, joined, are the decode
    of all ids at once, however they were divided; bytes that are no UTF-8 become U+FFFD in both.
    """

    def __init__(self, to_bytes: Callable[[Iterable[int]], bytes]) -> None:
        self._to_bytes = to_bytes
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def push(self, ids: Iterable[int]) -> str:
        """The text that these ids complete, perhaps empty. RequestError for an id outside the vocabulary,
        which leaves the decoder as it was."""
        return self._decoder.decode(self._to_bytes(ids))

    def flush(self) -> str:
        """The rest: U+FFFD for a character that never became whole, else nothing. Ready for a new text."""
        rest = self._decoder.decode(b"", True)
        self._decoder.reset()
        return rest
