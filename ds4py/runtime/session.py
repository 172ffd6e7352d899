"""A session: the state of one sequence of tokens, and its continuation by speculative decoding."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from ds4py import _native
from ds4py.deprecated import renamed_arguments
from ds4py.generation import GenerationOptions, Piece, Stats, start_generation
from ds4py.grammar import Constraint
from ds4py.prefix_cache.protocols import Progress
from ds4py.runtime.state import SessionState, no_anchor
from ds4py.runtime.token_ids import TokenIds, token_ids
from ds4py.sampling import AnySampling, Sampling, native_sampler
from ds4py.speculative import (
    AcceptanceRule,
    Choice,
    Costs,
    DeviceQ,
    Draft,
    Drafter,
    DrafterInfo,
    DraftLengthPolicy,
    PromptLookupDrafter,
    default_draft_vocab,
)
from ds4py.tokenizer import Tokenizer


class Session(SessionState):
    """One sequence of tokens that the model reads and continues; `Engine.session` opens it.

    One thread uses it at a time. The token emitted last, the anchor, is not in the state yet; each call that extends
    the state puts it there first.

    `generate` runs a whole generation. These calls do the same by hand, one cycle of speculative decoding a turn:

    >>> session.prefill(ids)
    >>> session.anchor = session.sample(sampling, rng)
    >>> while True:
    ...     draft = session.draft(sampling, rng)
    ...     logits = session.verify(draft.tokens)
    ...     n, token = accept(logits, draft, sampling, rng)
    ...     session.commit(n, token)  # emits draft.tokens[:n] and token, which is the next anchor

    After an error or a cancel the state is as before the call (for `generate`: as after its last piece).

    Attributes:
        tokenizer: the engine's.
        engine: the engine that opened the session.
        drafter: what the engine's drafter is; None without one.
        costs: the engine's measured times, to which every cycle adds.
        lookup: the drafter that proposes from the session's own tokens.
        stats: what the latest request took.
        warm: draft lengths and drafters whose graphs the session has built.
        exclusive: held by every call that changes the state, and by each step of a generation.
        rewinds: how often the text may have become another than a longer one.
    """

    def __init__(
        self,
        native: _native.Session,
        tokenizer: Tokenizer,
        drafter: DrafterInfo | None = None,
        costs: Costs | None = None,
        engine: object = None,
    ) -> None:
        super().__init__(native, tokenizer)
        self.drafter = drafter
        self.costs = Costs() if costs is None else costs
        self.engine = engine  # lives as long as its sessions, and keeps the costs at its end
        self.lookup = PromptLookupDrafter()
        self.stats = Stats()
        self.warm: set[int | str] = set()

    def sample(self, sampling: AnySampling, rng: _native.Rng) -> int:
        """Draws what follows the last token, without emitting it. RequestError when nothing has been evaluated."""
        self._settle()
        return int(self._live.sample(native_sampler(sampling), rng))

    @renamed_arguments(shortlist="draft_vocab")
    def draft(
        self, sampling: AnySampling | None = None, rng: _native.Rng | None = None, *, draft_vocab: int | None = None
    ) -> Draft:
        """Proposes a block of tokens after the anchor with the engine's drafter. Changes nothing but `rng`.

        Args:
            sampling: draws each proposal from this policy's q; None proposes the likeliest tokens.
            rng: where the draws come from; needed with `sampling`.
            draft_vocab: the number of candidates at each position, which q is over; 0 is the whole vocabulary. None is
                the whole vocabulary where the device's own kernels draw, and else `speculative.default_draft_vocab`.

        Raises RequestError without a drafter or an anchor, Cancelled.
        """
        sampler = None if sampling is None else native_sampler(sampling)
        if draft_vocab is None:
            draft_vocab = default_draft_vocab(self.tokenizer.vocab_size)
            if draft_vocab and self._live.drafts_on_device and (sampler is None or sampler.policy.temperature_only):
                draft_vocab = 0
        found = self._live.draft(
            self._required_anchor(), draft_vocab=draft_vocab, sampler=sampler, rng=rng, read_q=False
        )
        tokens, confidence = found.tokens, found.confidence
        if sampler is not None and found.device_draft:
            device_q = DeviceQ(found.device_draft, sampler.policy.temperature, self._live.device_q)
            return Draft(tokens, device_q, confidence=confidence)
        if found.q_probs is None:
            return Draft.point_mass(tokens, confidence)
        return Draft(tokens, found.q_probs, found.q_ids, confidence)

    def verify(self, tokens: TokenIds = ()) -> npt.NDArray[np.float32]:
        """Evaluates the anchor and up to 15 proposals after it; returns logits, float32 [len(tokens) + 1, vocab].

        Row 0 is what follows the anchor and decides on the first proposal; the last row is what follows all of them.
        The array is a view that the session's next call may overwrite. Nothing joins the state before `commit`; any
        other call that changes the state drops the rows.

        Raises RequestError without an anchor, for ids outside the vocabulary or a full context; Cancelled.
        """
        rows: npt.NDArray[np.float32] = self._live.verify(self._rows(tokens))
        return rows

    @property
    def accepts_on_device(self) -> bool:
        """Whether the device has kernels that accept proposals, so that rows need not be read."""
        return bool(self._live.accepts_on_device)

    def verify_on_device(self, tokens: TokenIds = ()) -> None:
        """Does what `verify` does, but leaves the logits on the device, for `accept`."""
        self._live.verify_on_device(self._rows(tokens))

    def accept(self, draft: Draft, temperature: float, rng: _native.Rng) -> tuple[int, int]:
        """Accepts the verified proposals one by one on the device; `speculative.accept` does so on the host.

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
        """Names who computes each op for which a device may have kernels of ds4py: "own (CUDA)", "ggml" or "host"."""
        return dict(self._live.ops())

    def commit(self, accepted: int, token: int | None) -> None:
        """Puts the anchor and the first `accepted` of the verified proposals into the state.

        `token` follows them and is the next anchor; None sets no anchor, where the text ends with what was accepted.

        Raises RequestError where fewer were verified, and for a token outside the vocabulary.
        """
        if (position := self.position) not in self._anchors:
            raise no_anchor()
        after = {} if token is None else {position + accepted + 1: self._checked(token)}
        with self.exclusive:
            self._live.commit(accepted + 1)
            self._anchors = after

    @renamed_arguments(width="draft_length")
    def generate(
        self,
        prompt: str | TokenIds = (),
        *,
        max_tokens: int | None = None,
        sampling: Sampling | None = None,
        stop: Sequence[str] = (),
        draft: Choice | Drafter = "auto",
        draft_length: int | str | DraftLengthPolicy = "auto",
        accept: AcceptanceRule = "token",
        draft_vocab: int | None = None,
        logprobs: int | None = None,
        constraint: Constraint | None = None,
        checkpoints: Sequence[int] = (),
        progress: Progress | None = None,
    ) -> Iterator[Piece]:
        """Extends the state by `prompt` (text or ids; empty continues) and streams what follows.

        The prompt runs before this returns. Generation ends at the end of text, at a stop string (not emitted), after
        `max_tokens` (None: no limit), or when the context is full. Abandoning the iterator keeps what was generated.

        What is generated follows the policy's distribution exactly, however it is drafted. A seed repeats a sampled
        text where neither `draft` nor `draft_length` is "auto", which follow measured times.

        Args:
            draft: who proposes: "dspark" is the engine's drafter, "lookup" the session's own tokens, "off" nobody
                (plain decoding), "auto" whichever of the first two promises more where the engine has a drafter, else
                "off".
            draft_length: how many proposals a cycle verifies, at most: "auto" is what costs and acceptance make the
                fastest, else a number, "confidence", "ewma", "staged", or a policy of `ds4py.speculative.draft_length`.
            accept: "token" decides on proposals one by one by rejection sampling, "block" jointly, "match" by drawing
                from the target and comparing.
            draft_vocab: the size of the draft vocabulary of "dspark", as for `draft`; None is its default.
            logprobs: each token comes with its log probability, and so many of the likeliest with theirs; None: none.
            constraint: a grammar that what is generated obeys (`ds4py.grammar`): the policy applies to what it allows,
                and generation ends where nothing more can follow.
            checkpoints: in the prompt, as for `prefill`.

        Raises RequestError for a prompt that does not fit or an empty session, Cancelled.
        """
        options: GenerationOptions = {
            "max_tokens": max_tokens,
            "sampling": sampling,
            "stop": stop,
            "draft": draft,
            "draft_length": draft_length,
            "accept": accept,
            "draft_vocab": draft_vocab,
            "logprobs": logprobs,
            "constraint": constraint,
        }
        return start_generation(self, prompt, options, checkpoints=checkpoints, progress=progress)

    def _rows(self, tokens: TokenIds) -> npt.NDArray[np.int32]:
        """The anchor and proposals after it."""
        rows = np.empty(len(tokens) + 1, np.int32)
        rows[0] = self._required_anchor()
        if len(tokens):
            rows[1:] = token_ids(tokens)
        return rows
