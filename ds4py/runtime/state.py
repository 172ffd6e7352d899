"""The state of one sequence of tokens in the target model."""

from __future__ import annotations

import os
from collections.abc import Sequence
from types import TracebackType
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from ds4py import _native
from ds4py.errors import RequestError
from ds4py.generation.in_process import StaysInProcess
from ds4py.prefix_cache.protocols import Progress
from ds4py.runtime.exclusive import Exclusive
from ds4py.runtime.token_ids import TokenIds, joined_ids, token_ids
from ds4py.tokenizer import Tokenizer

if TYPE_CHECKING:
    from typing_extensions import Self


class SessionState(StaysInProcess):
    """The tokens that the model has read, the state they left, and the anchor after them.

    The token emitted last, the anchor, is not in the state yet. Each call that extends the state puts it there first.
    After an error or a cancel the state is as before the call.

    Attributes:
        tokenizer: the engine's.
        exclusive: held by every call that changes the state, and by each step of a generation.
        rewinds: how often the text may have become another than a longer one.
    """

    def __init__(self, native: _native.Session, tokenizer: Tokenizer) -> None:
        self._state: _native.Session | None = native
        # By the frontier that it follows: Ctrl-C may come between a native call and the line after it, and an anchor
        # that the call has put into the state must not count any more.
        self._anchors: dict[int, int] = {}
        self.tokenizer = tokenizer
        self.exclusive = Exclusive()
        self.rewinds = 0

    @property
    def _live(self) -> _native.Session:
        if self._state is None:
            raise RequestError("this session is closed")
        return self._state

    @property
    def context(self) -> int:
        """The positions that the session can hold."""
        return int(self._live.context)

    @property
    def position(self) -> int:
        """The frontier: the number of positions in the state. The anchor comes next."""
        position: int = self._live.position
        return position

    @property
    def length(self) -> int:
        """The number of tokens so far: those in the state, and the anchor."""
        position = self.position
        return position + (position in self._anchors)

    @property
    def tokens(self) -> list[int]:
        """The ids of the tokens in the state, without the anchor."""
        ids: list[int] = self._live.tokens.tolist()
        return ids

    @property
    def anchor(self) -> int | None:
        """The token emitted last, which is not in the state yet; None where there is none, as after a prompt.

        Setting it emits a token; None takes it back. RequestError for an id outside the vocabulary.
        """
        return self._anchors.get(self.position)

    @anchor.setter
    def anchor(self, token: int | None) -> None:
        self._anchors = {} if token is None else {self.position: self._checked(token)}

    def history(self, start: int = 0) -> npt.NDArray[np.int32]:
        """Every token from position `start` on, int32 [n]: those in the state, then the anchor."""
        tokens = self._live.tokens[start:]
        return tokens if self.anchor is None else joined_ids(tokens, [self.anchor])

    def prefill(self, tokens: TokenIds, *, progress: Progress | None = None, checkpoints: Sequence[int] = ()) -> None:
        """Extends the state by a prompt, [n] ids; progress(done, total) counts its tokens.

        Going back to the positions in `checkpoints`, ascending, is at once later, while the session keeps them: 16 in
        all, of which those go first that lie close to the one before.

        Raises RequestError for ids outside the vocabulary or a full context, Cancelled.
        """
        with self.exclusive:
            self._live.prefill(joined_ids(self._pending(), token_ids(tokens)), progress, checkpoints=checkpoints)

    def evaluate(self, tokens: TokenIds, *, progress: Progress | None = None) -> npt.NDArray[np.float32]:
        """Extends the state and returns the logits of every row, float32 [len(tokens), vocab].

        Row i is the distribution of what follows tokens[i]. Raises as `prefill`.
        """
        with self.exclusive:
            self._settle()
            logits: npt.NDArray[np.float32] = self._live.evaluate(token_ids(tokens), progress)
            return logits

    def logits(self) -> npt.NDArray[np.float32]:
        """Logits [vocab] of what follows the last token. RequestError when nothing has been evaluated."""
        self._settle()
        row: npt.NDArray[np.float32] = self._live.logits()
        return row

    def rewind(self, position: int, *, progress: Progress | None = None) -> None:
        """Shortens the state to `position` and takes the anchor back.

        The last few rows are dropped at once; further back, the session evaluates again from the nearest checkpoint.
        Raises RequestError for a position beyond the state, Cancelled.
        """
        with self.exclusive:
            self.rewinds += 1
            self._live.rewind(position, progress)
            self._anchors = {}

    def resume_point(self, position: int) -> int:
        """The position from which a rewind to `position` evaluates again; `position` itself where it is at once."""
        return int(self._live.resume_point(position))

    @property
    def checkpoints(self) -> list[int]:
        """The positions to which a rewind is at once, ascending."""
        return list(self._live.checkpoints)

    def copy_from(self, source: SessionState, position: int, *, progress: Progress | None = None) -> None:
        """Becomes what `source` was at `position`: a copy from its nearest checkpoint, and evaluation from there.

        Raises RequestError unless both are of the same engine, drafter and KV type and the position fits; Cancelled,
        which leaves this session empty.
        """
        self.rewinds += 1
        self._anchors = {}
        self._live.copy_from(source._live, position, progress)

    def save(self, path: str | os.PathLike[str], *, checkpoints: Sequence[int] = ()) -> None:
        """Writes the state to a file; `Engine.load_session` continues from it.

        Those of `checkpoints` that the session has are written, too.
        """
        self._settle()
        self._live.save(os.fspath(path), checkpoints=checkpoints)

    def cancel(self) -> None:
        """Stops the running call (Cancelled); any thread may call it."""
        state = self._state  # once: another thread may be closing the session
        if state is not None:
            state.cancel()

    def clear_cancel(self) -> None:
        """Takes back a cancel that no call has answered yet."""
        if self._state is not None:
            self._state.clear_cancel()

    def close(self) -> None:
        """Frees the state."""
        self._state = None

    def _pending(self) -> list[int]:
        """The anchor as a list of one id; an empty list without one."""
        return [] if self.anchor is None else [self.anchor]

    def _required_anchor(self) -> int:
        if (anchor := self.anchor) is None:
            raise no_anchor()
        return anchor

    def _checked(self, token: int) -> int:
        if not 0 <= token < self.tokenizer.vocab_size:
            raise RequestError(f"token {token} is not in the vocabulary of {self.tokenizer.vocab_size}")
        return int(token)

    def _settle(self) -> None:
        """Puts the anchor into the state."""
        if self._pending():
            self.prefill(())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def no_anchor() -> RequestError:
    """The error of a call that needs an anchor where there is none."""
    return RequestError("there is no anchor: set session.anchor to the token that was emitted last")
