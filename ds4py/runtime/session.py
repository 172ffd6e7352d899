"""One conversation with a model."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from types import TracebackType

import numpy as np
import numpy.typing as npt

from ds4py import _native
from ds4py.errors import RequestError
from ds4py.generation.generator import pieces
from ds4py.generation.in_process import StaysInProcess
from ds4py.generation.options import check_limit, check_logprobs, check_sampling
from ds4py.generation.piece import Piece
from ds4py.generation.stats import Stats
from ds4py.generation.stopping import StopStrings
from ds4py.grammar import Constraint
from ds4py.runtime.exclusive import Exclusive
from ds4py.sampling.policy import Sampling
from ds4py.speculative import (
    Choice,
    Costs,
    DeviceQ,
    Draft,
    Drafter,
    DrafterInfo,
    DraftRequest,
    Loop,
    PromptLookupDrafter,
    Rule,
    Width,
    as_width,
    choose,
    default_shortlist,
)
from ds4py.tokenizer import Tokenizer

StepProgress = Callable[[int, int], None]
Ids = Sequence[int] | npt.NDArray[np.int32]
Policy = Sampling | _native.Sampler


class Session(StaysInProcess):
    """The state of one conversation: opened by `Engine.session`, used by one thread at a time.

    The token emitted last, the anchor, is not in the state yet. Each call that extends the state puts it there first.

    `generate` does everything. The same by hand, a cycle a turn:

    >>> session.prefill(ids)
    >>> session.anchor = session.sample(sampling, rng)
    >>> while True:
    ...     draft = session.draft(sampling, rng)
    ...     logits = session.verify(draft.tokens)
    ...     n, token = accept(logits, draft, sampling, rng)
    ...     session.commit(n, token)  # emits draft.tokens[:n] and token, which is the next anchor

    After an error or a cancel the state is as before the call (for `generate`: as after its last piece).

    Attributes:
        exclusive: held by every call that changes the state, and by each step of a generation.
        tokenizer: the engine's.
        engine: which opened it.
        drafter: what the engine's drafter is; None without one.
        costs: the engine's, to which every cycle adds.
        stats: of the latest request.
    """

    def __init__(
        self,
        native: _native.Session,
        tokenizer: Tokenizer,
        drafter: DrafterInfo | None = None,
        costs: Costs | None = None,
        engine: object = None,
    ) -> None:
        self._state: _native.Session | None = native
        # By the frontier that it follows: Ctrl-C may come between a native call and the line after it, and an anchor
        # that the call has put into the state must not count any more.
        self._anchors: dict[int, int] = {}
        self._lookup = PromptLookupDrafter()
        self.exclusive = Exclusive()
        self.tokenizer = tokenizer
        self.drafter = drafter
        self.costs = Costs() if costs is None else costs
        self.engine = engine  # lives as long as its sessions, and keeps the costs at its end
        self.stats = Stats()
        self.rewinds = 0
        """How often the text may have become another than a longer one."""
        self.warm: set[int | str] = set()
        """Widths and drafters whose graphs have been built."""

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
        """The frontier: positions in the state. The anchor comes next."""
        position: int = self._live.position
        return position

    @property
    def length(self) -> int:
        """Tokens so far: those in the state, and the anchor."""
        position = self.position
        return position + (position in self._anchors)

    @property
    def tokens(self) -> list[int]:
        """The ids in the state."""
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
        """Every token so far from position `start` on, int32: those in the state, then the anchor."""
        tokens = self._live.tokens[start:]
        return tokens if self.anchor is None else _joined(tokens, [self.anchor])

    def prefill(self, tokens: Ids, *, progress: StepProgress | None = None, checkpoints: Sequence[int] = ()) -> None:
        """Extends the state by a prompt; progress(done, total) counts its tokens.

        Going back to the positions in `checkpoints`, ascending, is at once later, while the session keeps them: 16 in
        all, of which those go first that lie close to the one before.

        Raises RequestError for ids outside the vocabulary or a full context, Cancelled.
        """
        with self.exclusive:
            self._live.prefill(_joined(self._pending(), token_ids(tokens)), progress, checkpoints=checkpoints)

    def evaluate(self, tokens: Ids, *, progress: StepProgress | None = None) -> npt.NDArray[np.float32]:
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

    def sample(self, sampling: Policy, rng: _native.Rng) -> int:
        """Draws what follows the last token, without emitting it. RequestError when nothing has been evaluated."""
        self._settle()
        return int(self._live.sample(_sampler(sampling), rng))

    def draft(
        self, sampling: Policy | None = None, rng: _native.Rng | None = None, *, shortlist: int | None = None
    ) -> Draft:
        """A block of the engine's drafter after the anchor. Changes nothing but `rng`.

        Args:
            sampling: draws each proposal from this policy's q; None proposes the likeliest tokens.
            rng: where the draws come from; needed with `sampling`.
            shortlist: candidates of each position, which q is over; 0 is the whole vocabulary, None is that where the
                device's own kernels draw, else `speculative.default_shortlist`.

        Raises RequestError without a drafter or an anchor, Cancelled.
        """
        sampler = None if sampling is None else _sampler(sampling)
        if shortlist is None:
            shortlist = default_shortlist(self.tokenizer.vocab_size)
            if shortlist and self._live.drafts_on_device and (sampler is None or sampler.policy.temperature_only):
                shortlist = 0
        found = self._live.draft(self._required_anchor(), draft_vocab=shortlist, sampler=sampler, rng=rng, read_q=False)
        tokens, confidence = found.tokens, found.confidence
        if sampler is not None and found.device_draft:
            on_device = DeviceQ(found.device_draft, sampler.policy.temperature, self._live.device_q)
            return Draft(tokens, on_device, confidence=confidence)
        if found.q_probs is None:
            return Draft.point_mass(tokens, confidence)
        return Draft(tokens, found.q_probs, found.q_ids, confidence)

    def verify(self, tokens: Ids = ()) -> npt.NDArray[np.float32]:
        """Logits of the anchor and of up to 15 proposals after it, float32 [len(tokens) + 1, vocab].

        Row 0 is what follows the anchor and judges the first proposal; the last row is what follows all of them. The
        array is a view that the session's next call may overwrite. Nothing joins the state before `commit`; any
        other call that changes the state drops the rows.

        Raises RequestError without an anchor, for ids outside the vocabulary or a full context; Cancelled.
        """
        rows: npt.NDArray[np.float32] = self._live.verify(self._rows(tokens))
        return rows

    @property
    def accepts_on_device(self) -> bool:
        """Whether the device has kernels that accept proposals, so that rows need not be read."""
        return bool(self._live.accepts_on_device)

    def verify_on_device(self, tokens: Ids = ()) -> None:
        """As `verify`, but the logits stay on the device, for `accept`."""
        self._live.verify_on_device(self._rows(tokens))

    def accept(self, draft: Draft, temperature: float, rng: _native.Rng) -> tuple[int, int]:
        """Accepts or rejects the verified proposals, one by one, on the device; `speculative.accept` does it here.

        Args:
            draft: whose first proposals were verified. Where it was drawn, then as the session's latest draft.
            temperature: of a policy that has nothing else; 0 takes the likeliest.
            rng: one number is taken for all draws, none at 0.

        Returns the number of accepted proposals and the token after them. Raises RequestError where nothing is verified
        or the draft is another, BackendError for logits that are no numbers.
        """
        number = draft.device_q.number if draft.device_q and temperature else 0
        accepted, token = self._live.accept(temperature=temperature, rng=rng, device_draft=number)
        return int(accepted), int(token)

    def ops(self) -> dict[str, str]:
        """Who computes what a device may have kernels of our own for: "own (CUDA)", "ggml", "host"."""
        return dict(self._live.ops())

    def commit(self, accepted: int, token: int | None) -> None:
        """Puts the anchor and the first `accepted` of the verified proposals into the state.

        `token` follows them: it is the next anchor. None is none, where the text ends with what was accepted.

        Raises RequestError where fewer were verified, and for a token outside the vocabulary.
        """
        if (position := self.position) not in self._anchors:
            raise no_anchor()
        after = {} if token is None else {position + accepted + 1: self._checked(token)}
        with self.exclusive:
            self._live.commit(accepted + 1)
            self._anchors = after

    def rewind(self, position: int, *, progress: StepProgress | None = None) -> None:
        """Shortens the state: at once for the last few rows, by evaluating again from a checkpoint further back."""
        with self.exclusive:
            self.rewinds += 1
            self._live.rewind(position, progress)
            self._anchors = {}

    def resume_point(self, position: int) -> int:
        """Where evaluating begins to go back to `position`: there itself where that is at once."""
        return int(self._live.resume_point(position))

    @property
    def checkpoints(self) -> list[int]:
        """Positions to which going back is at once, ascending."""
        return list(self._live.checkpoints)

    def copy_from(self, source: Session, position: int, *, progress: StepProgress | None = None) -> None:
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

    def generate(
        self,
        prompt: str | Ids = (),
        *,
        max_tokens: int | None = None,
        sampling: Sampling | None = None,
        stop: Sequence[str] = (),
        draft: Choice | Drafter = "auto",
        width: int | str | Width = "auto",
        accept: Rule = "token",
        draft_vocab: int | None = None,
        logprobs: int | None = None,
        constraint: Constraint | None = None,
        checkpoints: Sequence[int] = (),
        progress: StepProgress | None = None,
    ) -> Iterator[Piece]:
        """Extends the state by `prompt` (text or ids; empty continues) and streams what follows.

        The prompt runs before this returns. Generation ends at the end of text, at a stop string (not emitted), after
        `max_tokens` (None: no limit), or when the context is full. Abandoning the iterator keeps what was generated.

        What is generated follows the policy's distribution exactly, however it is drafted. A seed repeats a sampled
        text where neither `draft` nor `width` is "auto", which follow measured times.

        Args:
            draft: who proposes: "dspark" is the engine's drafter, "lookup" the session's own tokens, "off" nobody
                (plain decoding), "auto" whichever of the first two promises more where the engine has a drafter, else
                "off".
            width: proposals verified a cycle, at most: "auto" is what costs and acceptance make the fastest, else a
                number, "confidence", "ewma", "staged", or a policy of `ds4py.speculative.draft_length`.
            accept: "token" judges proposals one by one by rejection sampling, "block" jointly, "match" by drawing from
                the target and comparing.
            draft_vocab: the shortlist of "dspark", as for `draft`; None is its default.
            logprobs: each token comes with its log probability, and so many of the likeliest with theirs; None: none.
            constraint: a grammar that what is generated obeys (`ds4py.grammar`): the policy applies to what it allows,
                and generation ends where nothing more can follow.
            checkpoints: in the prompt, as for `prefill`.

        Raises RequestError for a prompt that does not fit or an empty session, Cancelled.
        """
        check_limit(max_tokens)
        check_sampling(sampling)
        check_logprobs(logprobs, self.tokenizer.vocab_size)
        stops = StopStrings(stop)
        request = DraftRequest.of(sampling or Sampling(), logprobs, constraint)
        drafters = choose(draft, self.drafter, self._lookup, draft_vocab)
        loop = Loop(self, request, drafters, as_width(width), accept, self.costs)
        self._live.clear_cancel()
        self.stats = Stats(seed=request.rng.seed, speculation=loop.stats)
        self._run_prompt(prompt, progress, checkpoints)
        return pieces(self, loop, stops, max_tokens, self.stats)

    def _run_prompt(self, prompt: str | Ids, progress: StepProgress | None, checkpoints: Sequence[int]) -> None:
        started = time.perf_counter()
        fresh = self.position == 0 and self.anchor is None
        ids = self.tokenizer.encode(prompt, add_bos=None if fresh else False) if isinstance(prompt, str) else prompt
        if len(ids):
            self.prefill(ids, progress=progress, checkpoints=checkpoints)
        elif fresh:
            raise RequestError("the prompt is empty and so is the session: give a prompt")
        self.stats.prompt_tokens = len(ids)
        self.stats.prompt_seconds = time.perf_counter() - started

    def _pending(self) -> list[int]:
        """The anchor, or nothing."""
        return [] if self.anchor is None else [self.anchor]

    def _required_anchor(self) -> int:
        if (anchor := self.anchor) is None:
            raise no_anchor()
        return anchor

    def _rows(self, tokens: Ids) -> npt.NDArray[np.int32]:
        """The anchor and proposals after it."""
        rows = np.empty(len(tokens) + 1, np.int32)
        rows[0] = self._required_anchor()
        if len(tokens):
            rows[1:] = token_ids(tokens)
        return rows

    def _checked(self, token: int) -> int:
        if not 0 <= token < self.tokenizer.vocab_size:
            raise RequestError(f"token {token} is not in the vocabulary of {self.tokenizer.vocab_size}")
        return int(token)

    def _settle(self) -> None:
        """Puts the anchor into the state."""
        if self._pending():
            self.prefill(())

    def __enter__(self) -> Session:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _sampler(sampling: Policy) -> _native.Sampler:
    return sampling if isinstance(sampling, _native.Sampler) else _native.Sampler(sampling.policy())


def no_anchor() -> RequestError:
    """What is raised where one is needed."""
    return RequestError("there is no anchor: set session.anchor to the token that was emitted last")


def _joined(first: Ids, then: Ids) -> npt.NDArray[np.int32]:
    """Both, as the core takes them; faster than numpy's own for a few."""
    ids = np.empty(len(first) + len(then), np.int32)
    ids[: len(first)] = first
    ids[len(first) :] = then
    return ids


def token_ids(tokens: Ids) -> npt.NDArray[np.int32]:
    """Token ids as the core takes them. RequestError for anything but whole numbers in range."""
    ids = np.asarray(tokens)
    if ids.ndim != 1:
        raise RequestError(f"tokens have {ids.ndim} dimensions, wanted a list of ids")
    if ids.dtype == np.int32:  # the core looks whether they are in the vocabulary
        return ids
    if ids.size and (ids.dtype.kind not in "iu" or ids.min() < 0 or ids.max() > np.iinfo(np.int32).max):
        raise RequestError(f"tokens hold {ids.dtype} values from {ids.min()} to {ids.max()}, wanted token ids")
    return ids.astype(np.int32)
