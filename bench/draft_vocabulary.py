"""Measures the acceptance and the time of drafts over M candidates, for several sizes M of the draft vocabulary.

Usage: draft_vocabulary.py TARGET.gguf DRAFTER.gguf [-t 2] [--context 1024] [--prompts 8] [--tokens 96] [--temp 1]
                    [--ids 1,2,3]
The prompts are pieces of Python's standard library, or the given ids with so many seeds. Every M drafts for the same
prompts with the same seeds; the times are of drafts at the same state, taken in turns. M = 0 is the whole vocabulary.
"""

import argparse
import inspect
import statistics
import textwrap
import time
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
from machine import print_header

from ds4py import Engine, Sampling, Session, _native
from ds4py.speculative import DSparkDrafter, Speculation

PROMPT_TOKENS = 200


def prompts(engine: Engine, args: argparse.Namespace) -> Iterator[npt.NDArray[np.int32]]:
    """Ids of the prompts."""
    if args.ids:
        yield from [np.array(args.ids.split(","), np.int32)] * args.prompts
        return
    ids = np.array(engine.tokenizer.encode(inspect.getsource(textwrap) + inspect.getsource(inspect)), np.int32)
    for start in np.linspace(0, len(ids) - PROMPT_TOKENS, args.prompts).astype(int):
        yield ids[start : start + PROMPT_TOKENS]


def generated(
    session: Session, args: argparse.Namespace, prompt: npt.NDArray[np.int32], seed: int, draft_vocab: int
) -> Speculation:
    """The statistics of one generation."""
    session.rewind(0)
    sampling = Sampling(temperature=args.temp, seed=seed)
    pieces = session.generate(
        prompt, max_tokens=args.tokens, sampling=sampling, draft=DSparkDrafter(draft_vocab=draft_vocab)
    )
    for _ in pieces:
        pass
    return session.stats.speculation


def draft_times(session: Session, args: argparse.Namespace, draft_vocabs: list[int]) -> dict[int, list[float]]:
    """Milliseconds of drafts after the session's prompt, each size in turn."""
    times: dict[int, list[float]] = {size: [] for size in draft_vocabs}
    sampler = _native.Sampler(Sampling(temperature=args.temp).policy())
    rng = _native.Rng(1)
    session.anchor = 7
    for _ in range(args.repeats + 1):
        for size, found in times.items():
            begin = time.perf_counter()
            session.draft(sampler, rng, draft_vocab=size)
            found.append((time.perf_counter() - begin) * 1e3)
    return {size: found[1:] for size, found in times.items()}  # the first ones built their graphs


def main() -> None:
    """Runs the bench."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("target")
    parser.add_argument("drafter")
    parser.add_argument("-t", "--threads", type=int, default=None)
    parser.add_argument("--context", type=int, default=1024)
    parser.add_argument("--prompts", type=int, default=8)
    parser.add_argument("--ids", help="ids of a prompt")
    parser.add_argument("--tokens", type=int, default=96)
    parser.add_argument("--temp", type=float, default=1.0)
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--sizes", type=int, nargs="+", default=[32, 64, 128, 256, 512, 1024, 2048, 0])
    args = parser.parse_args()
    with (
        Engine(args.target, drafter=args.drafter, threads=args.threads) as engine,
        engine.session(context=args.context) as session,
    ):
        shown = {"drafter": args.drafter.split("/")[-1], "threads": engine.threads, "temperature": args.temp}
        print_header(args.target, **shown, context=args.context, prompts=args.prompts, tokens=args.tokens)
        sizes = [size for size in args.sizes if size < engine.hyperparameters.vocab]
        texts = list(prompts(engine, args))
        found: dict[int, list[Speculation]] = {size: [] for size in sizes}
        for size in sizes if args.tokens else []:
            found[size] = [generated(session, args, text, seed, size) for seed, text in enumerate(texts)]
        session.rewind(0)
        session.prefill(texts[0])
        times = draft_times(session, args, sizes)
        print(f"\n{'M':>6}{'draft ms':>10}{'min':>8}{'acceptance':>12}{'emitted a cycle':>17}")
        for size in sizes:
            cycles = Speculation("dspark", [cycle for each in found[size] for cycle in each.cycles])
            print(
                f"{size or 'all':>6}{statistics.median(times[size]):>10.2f}{min(times[size]):>8.2f}"
                f"{cycles.acceptance:>12.3f}{cycles.emitted_per_cycle:>17.3f}"
            )


if __name__ == "__main__":
    main()
