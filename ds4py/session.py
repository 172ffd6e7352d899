"""One conversation with a model."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from types import TracebackType

import numpy as np
import numpy.typing as npt

from ds4py import _native
from ds4py.errors import RequestError
from ds4py.sampling import Sampling
from ds4py.stopping import StopStrings
from ds4py.tokenizer import Tokenizer

StepProgress = Callable[[int, int], None]


@dataclass(frozen=True)
class Piece:
    """What one step of a generation adds.

    Attributes:
        text: text that is complete now; may be empty while a character or a stop string is pending.
        tokens: the ids behind this step.
        finish_reason: None until the last piece; then "stop" (end of text or a stop string) or "length".
    """

    text: str
    tokens: tuple[int, ...]
    finish_reason: str | None = None


@dataclass
class Stats:
    """Counts and seconds of the latest request."""

    seed: int | None = None
    prompt_tokens: int = 0
    prompt_seconds: float = 0.0
    generated_tokens: int = 0
    generate_seconds: float = 0.0

    @property
    def prompt_tokens_per_second(self) -> float:
        """0 when there was no prompt."""
        return self.prompt_tokens / self.prompt_seconds if self.prompt_seconds else 0.0

    @property
    def tokens_per_second(self) -> float:
        """Generated tokens a second, the prompt's time left out; 0 when nothing was generated."""
        return self.generated_tokens / self.generate_seconds if self.generate_seconds else 0.0


class Session:
    """The state of one conversation: opened by `Engine.session`, used by one thread at a time.

    After an error or a cancel the state is as before the call (for `generate`: as after its last piece).
    """

    def __init__(self, native: _native.Session, tokenizer: Tokenizer) -> None:
        self._state: _native.Session | None = native
        self._anchor: int | None = None  # emitted last, not yet in the state
        self.tokenizer = tokenizer
        self.stats = Stats()

    @property
    def _live(self) -> _native.Session:
        if self._state is None:
            raise RequestError("this session is closed")
        return self._state

    @property
    def context(self) -> int:
        """Positions the session can hold."""
        return int(self._live.context)

    @property
    def position(self) -> int:
        """The frontier: positions in the state. The token emitted last joins it with the next call."""
        return int(self._live.position)

    @property
    def tokens(self) -> list[int]:
        """The ids in the state."""
        return list(self._live.tokens)

    def prefill(self, tokens: Sequence[int], *, progress: StepProgress | None = None) -> None:
        """Extends the state by a prompt; progress(done, total) counts its tokens.

        Raises RequestError for ids outside the vocabulary or a full context, Cancelled.
        """
        ids = _ids(tokens)
        self._live.prefill(ids if self._anchor is None else np.append(np.int32(self._anchor), ids), progress)
        self._anchor = None

    def evaluate(self, tokens: Sequence[int], *, progress: StepProgress | None = None) -> npt.NDArray[np.float32]:
        """Extends the state and returns the logits of every row, float32 [len(tokens), vocab].

        Row i is the distribution of what follows tokens[i]. Raises as `prefill`.
        """
        self._settle()
        logits: npt.NDArray[np.float32] = self._live.evaluate(_ids(tokens), progress)
        return logits

    def logits(self) -> npt.NDArray[np.float32]:
        """Logits [vocab] of what follows the last token. RequestError when nothing has been evaluated."""
        self._settle()
        row: npt.NDArray[np.float32] = self._live.logits()
        return row

    def rewind(self, position: int, *, progress: StepProgress | None = None) -> None:
        """Shortens the state: at once for the last few rows, by evaluating again from a checkpoint further back."""
        self._live.rewind(position, progress)
        self._anchor = None

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the state to a file; `Engine.load_session` continues from it."""
        self._settle()
        self._live.save(os.fspath(path))

    def cancel(self) -> None:
        """Stops the running call (Cancelled); any thread may call it."""
        if self._state is not None:
            self._state.cancel()

    def close(self) -> None:
        """Frees the state."""
        self._state = None

    def generate(
        self,
        prompt: str | Sequence[int] = (),
        *,
        max_tokens: int | None = None,
        sampling: Sampling | None = None,
        stop: Sequence[str] = (),
        progress: StepProgress | None = None,
    ) -> Iterator[Piece]:
        """Extends the state by `prompt` (text or ids; empty continues) and streams what follows.

        The prompt runs before this returns. Generation ends at the end of text, at a stop string (not emitted), after
        `max_tokens` (None: no limit), or when the context is full. Abandoning the iterator keeps what was generated.

        Raises RequestError for a prompt that does not fit or an empty session, Cancelled.
        """
        sampling = sampling or Sampling()
        if max_tokens is not None and max_tokens < 0:
            raise RequestError(f"max_tokens is {max_tokens}, wanted 0 or more")
        stops = StopStrings(stop)
        sampler = _native.Sampler(sampling.policy())
        rng = _native.Rng(sampling.resolved_seed())
        self._live.clear_cancel()
        self.stats = Stats(seed=rng.seed)
        self._run_prompt(prompt, progress)
        return self._stream(sampler, rng, max_tokens, stops)

    def _run_prompt(self, prompt: str | Sequence[int], progress: StepProgress | None) -> None:
        started = time.perf_counter()
        fresh = self.position == 0 and self._anchor is None
        ids = self.tokenizer.encode(prompt, add_bos=None if fresh else False) if isinstance(prompt, str) else prompt
        if len(ids):
            self.prefill(ids, progress=progress)
        elif fresh:
            raise RequestError("the prompt is empty and so is the session: give a prompt")
        self.stats.prompt_tokens = len(ids)
        self.stats.prompt_seconds = time.perf_counter() - started

    def _stream(
        self, sampler: _native.Sampler, rng: _native.Rng, max_tokens: int | None, stops: StopStrings
    ) -> Iterator[Piece]:
        self._settle()
        start = self.position
        room = self.context - start
        limit = room if max_tokens is None else min(max_tokens, room)
        decoder = self.tokenizer.detokenizer()
        drawn: list[int] = []
        shown = ""
        while len(drawn) < limit:
            token = self._next(sampler, rng)
            if token in self.tokenizer.stop_ids:
                yield Piece(stops.push(decoder.flush()) + stops.flush(), (), "stop")
                return
            drawn.append(token)
            text = stops.push(decoder.push([token]))
            shown += text
            if stops.found:
                self._keep_shown(start, drawn, shown)
                yield Piece(text, (token,), "stop")
                return
            self._anchor = token
            if len(drawn) == limit:
                text += stops.push(decoder.flush()) + stops.flush()
            yield Piece(text, (token,), "length" if len(drawn) == limit else None)
        if not limit:
            yield Piece("", (), "length")

    def _next(self, sampler: _native.Sampler, rng: _native.Rng) -> int:
        """Puts the anchor into the state and draws what follows it."""
        started = time.perf_counter()
        self._settle()
        token = int(self._live.sample(sampler, rng))
        self.stats.generated_tokens += 1
        self.stats.generate_seconds += time.perf_counter() - started
        return token

    def _settle(self) -> None:
        """Puts the anchor, the last emitted token, into the state."""
        if self._anchor is not None:
            self._live.prefill(_ids([self._anchor]))
            self._anchor = None

    def _keep_shown(self, start: int, drawn: list[int], shown: str) -> None:
        """Cuts the state back to the drawn tokens whose text was shown before a stop string."""
        keep = len(drawn) - 1  # the last one completed the stop string
        while keep and not shown.startswith(self.tokenizer.decode(drawn[:keep])):
            keep -= 1
        self._anchor = None
        self._live.rewind(start + keep)

    def __enter__(self) -> Session:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _ids(tokens: Sequence[int]) -> npt.NDArray[np.int32]:
    """Token ids as the core takes them. RequestError for anything but whole numbers in range."""
    ids = np.asarray(tokens)
    if ids.size and (ids.dtype.kind not in "iu" or ids.min() < 0 or ids.max() > np.iinfo(np.int32).max):
        raise RequestError(f"tokens hold {ids.dtype} values from {ids.min()} to {ids.max()}, wanted token ids")
    return ids.astype(np.int32)
