"""Evaluates the prompt of a generation."""

from __future__ import annotations

import time
from collections.abc import Sequence

from ds4py.errors import RequestError
from ds4py.generation.session import GenerationSession
from ds4py.prefix_cache.protocols import Ids, Progress


def evaluate_prompt(
    session: GenerationSession, prompt: str | Sequence[int] | Ids, progress: Progress | None, checkpoints: Sequence[int]
) -> None:
    """Extends the session by a prompt, text or ids, and records its tokens and seconds in `session.stats`.

    A text that begins an empty session is encoded with the tokenizer's begin-of-sequence token. An empty prompt
    continues the session. Raises RequestError if prompt and session are both empty; Cancelled.
    """
    started = time.perf_counter()
    fresh = session.position == 0 and session.anchor is None
    ids = session.tokenizer.encode(prompt, add_bos=None if fresh else False) if isinstance(prompt, str) else prompt
    if len(ids):
        session.prefill(ids, progress=progress, checkpoints=checkpoints)
    elif fresh:
        raise RequestError("the prompt is empty and so is the session: give a prompt")
    session.stats.prompt_tokens = len(ids)
    session.stats.prompt_seconds = time.perf_counter() - started
