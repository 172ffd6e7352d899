"""Measures one accept step over k + 1 rows of logits in milliseconds, by rule, policy and form of q.

Usage: sampling.py [--rows 6] [--vocab 129280] [--shortlist 512] [--steps 200]
Logits are peaked like those of a language model, and q is formed from logits near to them. In the measured steps every
proposal is accepted, so every row is read. One thread.
"""

import argparse
import statistics
import time
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from machine import cpu_model

from ds4py import _native
from ds4py.sampling.policy import Sampling
from ds4py.speculative.accept import accept

POLICIES = {"T=1": Sampling(), "T=1 top-p 0.95": Sampling(top_p=0.95)}


@dataclass
class Draft:
    """Proposals with their q."""

    tokens: npt.NDArray[np.int32]
    q_probs: npt.NDArray[np.float32]
    q_ids: npt.NDArray[np.int32] | None


def target_logits(rows: int, vocab: int, seed: int = 1) -> npt.NDArray[np.float32]:
    """Makes rows whose likeliest token has about half of the probability, above a long tail."""
    generator = np.random.default_rng(seed)
    logits = generator.normal(scale=2.0, size=(rows, vocab))
    logits[np.arange(rows), generator.integers(0, vocab, size=rows)] += 16
    return logits.astype(np.float32)


def proposed(logits: npt.NDArray[np.float32], sampling: Sampling, width: int | None) -> Draft:
    """Proposes the likeliest token of every row, with q over the vocabulary or over the `width` likeliest tokens."""
    generator = np.random.default_rng(2)
    near = (logits + generator.normal(scale=0.3, size=logits.shape)).astype(np.float32)[:-1]
    tokens = near.argmax(axis=1).astype(np.int32)
    sampler = _native.Sampler(sampling.policy())
    if width is None:
        return Draft(tokens, np.stack([sampler.distribution(row) for row in near]), None)
    ids = np.argsort(-near, axis=1)[:, :width].astype(np.int32)
    listed = np.take_along_axis(near, ids, axis=1)
    return Draft(tokens, np.stack([sampler.distribution(row) for row in listed]), ids)


def full_steps(
    rule: str, logits: npt.NDArray[np.float32], draft: Draft, sampling: Sampling, steps: int
) -> Iterator[float]:
    """Yields the milliseconds of steps that accept every proposal."""
    sampler = _native.Sampler(sampling.policy())
    rng = _native.Rng(3)
    while steps > 0:
        begin = time.perf_counter()
        accepted, _ = accept(logits, draft, sampler, rng, rule=rule)
        elapsed = time.perf_counter() - begin
        if accepted == len(draft.tokens):
            steps -= 1
            yield elapsed * 1e3


def main() -> None:
    """Runs the bench."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=6)
    parser.add_argument("--vocab", type=int, default=129_280)
    parser.add_argument("--shortlist", type=int, default=512)
    parser.add_argument("--steps", type=int, default=200)
    args = parser.parse_args()
    print(f"machine  {cpu_model()}, 1 thread")
    print(f"settings {args.rows} rows, vocabulary {args.vocab}, shortlist {args.shortlist}, {args.steps} steps")
    print(f"\n{'policy':16}{'q':12}{'rule':8}{'median ms':>10}{'min ms':>10}")
    logits = target_logits(args.rows, args.vocab)
    for name, sampling in POLICIES.items():
        for form, width in (("vocabulary", None), ("shortlist", args.shortlist)):
            draft = proposed(logits, sampling, width)
            for rule in ("token", "match", "block"):
                found = list(full_steps(rule, logits, draft, sampling, args.steps))
                print(f"{name:16}{form:12}{rule:8}{statistics.median(found):10.3f}{min(found):10.3f}", flush=True)


main()
