"""An engine without a model: it says what a test has written down, as slowly as the test wants."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ds4py import ChatPiece, Usage
from ds4py.chat.reply import Content, Event
from ds4py.errors import Cancelled, PromptTooLong
from ds4py.generation.stats import Stats
from ds4py.sampling.logprobs import TokenLogprobs


class Bytes:
    """A tokenizer whose tokens are bytes."""

    bos_id = 0

    def token_bytes(self, token: int) -> bytes:
        return bytes([token])


@dataclass
class Pool:
    context: int = 64


@dataclass
class FakeEngine:
    """An engine that records its `calls` and answers each with `parts`, one event a piece, each after `delay` seconds.

    While `prefill` is not set, every answer is in its prompt.
    """

    parts: Sequence[Event] = (Content("Hel"), Content("lo"))
    finish: str = "stop"
    delay: float = 0.0
    error: Exception | None = None
    calls: list[dict[str, Any]] = field(default_factory=list)
    running: set[FakeStream] = field(default_factory=set)
    most: int = 0
    name: str = "fake"
    tokenizer: Bytes = field(default_factory=Bytes)
    pool: Pool = field(default_factory=Pool)

    def __post_init__(self) -> None:
        self.prefill = threading.Event()
        self.prefill.set()

    def chat(self, messages: Sequence[dict[str, Any]], **options: Any) -> FakeStream:
        self.calls.append({"messages": messages, **options})
        return self._stream(sum(len(each["content"]) for each in messages), options)

    def complete(self, prompt: str | Sequence[int], **options: Any) -> FakeStream:
        self.calls.append({"prompt": prompt, **options})
        return self._stream(len(prompt), options)

    def close(self) -> None:
        pass

    def _stream(self, tokens: int, options: dict[str, Any]) -> FakeStream:
        if tokens >= self.pool.context:
            raise PromptTooLong(f"the prompt has {tokens} tokens, and the context is {self.pool.context}")
        return FakeStream(self, Usage(tokens, cached_tokens=tokens // 2), options)


class FakeStream:
    """One answer."""

    def __init__(self, engine: FakeEngine, usage: Usage, options: dict[str, Any]) -> None:
        self.usage = usage
        self.finish_reason: str | None = None
        self.stop_string: str | None = None
        self.stats = Stats()
        self._engine = engine
        self._options = options
        self._cancelled = threading.Event()
        self._pieces = self._run()

    def __iter__(self) -> Iterator[ChatPiece]:
        return self._pieces

    def cancel(self) -> None:
        self._cancelled.set()

    def close(self) -> None:
        self._pieces.close()

    def _run(self) -> Iterator[ChatPiece]:
        self._engine.running.add(self)
        self._engine.most = max(self._engine.most, len(self._engine.running))
        try:
            while not self._engine.prefill.wait(0.005):
                self._check()
            if self._engine.error:
                raise self._engine.error
            yield from self._answer()
        finally:
            self._engine.running.discard(self)

    def _answer(self) -> Iterator[ChatPiece]:
        limit = self._options.get("max_tokens")
        parts = list(self._engine.parts)[:limit]
        for i, part in enumerate(parts):
            time.sleep(self._engine.delay)
            self._check()
            self.usage = replace(self.usage, completion_tokens=i + 1)
            token = 65 + i % 26
            logprobs = None
            if (count := self._options.get("logprobs")) is not None:
                logprobs = (TokenLogprobs(token, -0.5, tuple((66 + n, -1.0 - n) for n in range(count))),)
            if i == len(parts) - 1:
                self.finish_reason = "length" if len(parts) == limit else self._engine.finish
            yield ChatPiece((part,), (token,), logprobs, self.finish_reason)

    def _check(self) -> None:
        if self._cancelled.is_set():
            raise Cancelled("the request was cancelled")


def renewed(engine: Any) -> FakeEngine:
    """A fake engine as it was made."""
    engine.__init__()
    return engine  # type: ignore[no-any-return]
