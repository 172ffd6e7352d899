"""Runs DeepSeek-V4 models from GGUF files, with speculative decoding.

>>> import ds4py
>>> with ds4py.Engine() as engine, engine.session() as session:
...     for piece in session.generate("def quicksort(", max_tokens=16, sampling=ds4py.Sampling(seed=7)):
...         print(piece.text, end="", flush=True)
"""

import logging
from pathlib import Path

try:
    from ds4py import _native
except ImportError as error:
    from ds4py.libraries import explain

    raise ImportError(explain(error)) from None

_native.load_backends(str(Path(_native.__file__).parent / "lib"))

from ds4py import deprecated  # noqa: E402
from ds4py._native import Rng  # noqa: E402
from ds4py.errors import BackendError, Cancelled, Error, FormatError, PairError, RequestError, UnprovenDevice  # noqa: E402
from ds4py.generation import ChatPiece, ChatStream, Piece, Stats, Usage  # noqa: E402
from ds4py.runtime import Engine, Session  # noqa: E402
from ds4py.sampling import Sampling, TokenLogprobs  # noqa: E402
from ds4py.tokenizer import Tokenizer  # noqa: E402

deprecated.install()
logging.getLogger(__name__).addHandler(logging.NullHandler())  # what is said goes where the application sends it

__version__ = "0.1.0"
__commit__ = _native.commit()
"""The commit that the native module was built from, or "unknown"."""

__all__ = [
    "BackendError",
    "Cancelled",
    "ChatPiece",
    "ChatStream",
    "Engine",
    "Error",
    "FormatError",
    "PairError",
    "Piece",
    "RequestError",
    "Rng",
    "Sampling",
    "Session",
    "Stats",
    "TokenLogprobs",
    "Tokenizer",
    "UnprovenDevice",
    "Usage",
]
