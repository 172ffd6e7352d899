"""Converts text to token ids and back, with the vocabulary of a GGUF file."""

from ds4py.tokenizer.stream import StreamDecoder
from ds4py.tokenizer.tokenizer import Tokenizer

__all__ = ["StreamDecoder", "Tokenizer"]
