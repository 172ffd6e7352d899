"""A decoder that turns tokens into text as they arrive."""

import codecs
from collections.abc import Callable, Iterable


class StreamDecoder:
    """Decodes token ids into text incrementally.

    Tokens are bytes, and a character may be spread over several of them; its bytes are held back until
    it is complete. The texts of all pushes and of `flush`, joined, equal the decoding of all ids at once,
    however they were divided. Bytes that are not valid UTF-8 become U+FFFD in both cases.
    """

    def __init__(self, to_bytes: Callable[[Iterable[int]], bytes]) -> None:
        self._to_bytes = to_bytes
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def push(self, ids: Iterable[int]) -> str:
        """Returns the text that these ids complete; it may be empty.

        Raises RequestError for an id outside the vocabulary; the decoder is then unchanged.
        """
        return self._decoder.decode(self._to_bytes(ids))

    def flush(self) -> str:
        """Returns U+FFFD if a character is incomplete, else an empty text, and resets the decoder."""
        rest = self._decoder.decode(b"", True)
        self._decoder.reset()
        return rest
