"""Runs a generation: evaluates the prompt, then runs cycles of speculative decoding until the text ends."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

from ds4py.errors import RequestError
from ds4py.generation.options import GenerationOptions, check_limit, check_logprobs, check_sampling
from ds4py.generation.output_processor import OutputProcessor
from ds4py.generation.piece import Piece
from ds4py.generation.prompt import evaluate_prompt
from ds4py.generation.session import GenerationSession
from ds4py.generation.stats import Stats
from ds4py.generation.stop_strings import StopStrings
from ds4py.prefix_cache.protocols import Ids, Progress
from ds4py.sampling import Sampling
from ds4py.speculative import DraftRequest, Loop, as_draft_length, choose


def start_generation(
    session: GenerationSession,
    prompt: str | Sequence[int] | Ids,
    options: GenerationOptions,
    *,
    checkpoints: Sequence[int] = (),
    progress: Progress | None = None,
) -> Iterator[Piece]:
    """Evaluates the prompt and returns an iterator of generated pieces; `Session.generate` describes the arguments."""
    max_tokens, sampling, logprobs = (options.get("max_tokens"), options.get("sampling"), options.get("logprobs"))
    check_limit(max_tokens)
    check_sampling(sampling)
    check_logprobs(logprobs, session.tokenizer.vocab_size)
    stops = StopStrings(options.get("stop", ()))
    request = DraftRequest.of(sampling or Sampling(), logprobs, options.get("constraint"))
    drafters = choose(options.get("draft", "auto"), session.drafter, session.lookup, options.get("draft_vocab"))
    draft_length = as_draft_length(options.get("draft_length", "auto"))
    loop = Loop(session, request, drafters, draft_length, options.get("accept", "token"), session.costs)
    session.clear_cancel()
    session.stats = Stats(seed=request.rng.seed, speculation=loop.stats)
    evaluate_prompt(session, prompt, progress, checkpoints)
    return generated_pieces(session, loop, stops, max_tokens, session.stats)


def generated_pieces(
    session: GenerationSession, loop: Loop, stops: StopStrings, max_tokens: int | None, stats: Stats
) -> Iterator[Piece]:
    """Runs cycles until the text ends, and adds their tokens and seconds to `stats`.

    Before a piece is yielded, the tokens that make up its text are in the state; the last one may be the anchor
    instead. Raises RequestError if other calls used the session between two pieces, and whatever a cycle raises.
    """
    start = session.length
    room = max(0, session.context - start)
    output = OutputProcessor(session.tokenizer, stops, room if max_tokens is None else min(max_tokens, room))
    piece = Piece("", ())
    at = start, session.rewinds
    while piece.finish_reason is None:
        with session.exclusive:
            if (session.length, session.rewinds) != at:
                raise RequestError(
                    f"the session went on elsewhere since this generation's last piece (there were {at[0]} tokens, now "
                    f"{session.length}): end one generation before the session is used for another"
                )
            started = time.perf_counter()
            tokens = loop.cycle(output.remaining) if output.remaining else []
            piece = output.push(tokens, loop.complete)
            commit_tokens(session, tokens, at[0], start + output.kept)
            at = start + output.kept, session.rewinds
            stats.generated_tokens += len(piece.tokens)
            stats.generate_seconds += time.perf_counter() - started
        if loop.logprobs is not None:
            piece = piece._replace(logprobs=loop.logprobs[: len(piece.tokens)])
        yield piece


def commit_tokens(session: GenerationSession, tokens: Sequence[int], begin: int, end: int) -> None:
    """Commits a cycle's tokens, the first at position `begin`, and drops those from position `end` on."""
    if not tokens:
        return
    anchored = session.anchor is not None
    if end == begin + len(tokens):
        if anchored:
            session.commit(len(tokens) - 1, tokens[-1])
        else:
            session.anchor = tokens[-1]
    elif anchored and end >= begin:
        session.commit(end - begin, None)
    else:
        session.rewind(end)
