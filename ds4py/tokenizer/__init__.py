"""Text to token ids and back, built from what a GGUF file carries."""

from ds4py.tokenizer.stream import StreamDecoder
from ds4py.tokenizer.tokenizer import Tokenizer

__all__ = ["StreamDecoder", "Tokenizer"]
