"""What speculation brings at a given acceptance, whatever the drafter is worth: its proposals are replaced.

Usage: acceptance.py [-m TARGET.gguf -md DRAFTER.gguf] [-t THREADS] [-n 64] [--acceptance 0.5,0.7,0.9] [--rounds 5]
                     [--json FILE]
The text is what plain decoding says after a few random ids. Every cycle drafts a block and pays for it, but proposes
the text itself, each token with the given probability and else another. Plain decoding and every acceptance take
turns; times are of decoding alone. Without -m it runs the embedded pair.
"""

import argparse
import json
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from arguments import positive, share
from machine import print_header
from rows import random_ids

from ds4py import Engine, RequestError, Sampling, Session
from ds4py.speculative import Draft, Request

PROMPT = 32
GREEDY = Sampling(temperature=0)


class Simulated:
    """Pays for a draft, then proposes what is known to follow, with so many errors."""

    name = "simulated"

    def __init__(self, text: Sequence[int], acceptance: float, seed: int) -> None:
        self.text, self.acceptance, self.rng = np.array(text, np.int32), acceptance, np.random.default_rng(seed)

    def propose(self, session: Session, request: Request, width: int) -> Draft:
        """The text's next tokens; a wrong one is the right one's neighbour."""
        block = len(session.draft())
        first = len(session.history())
        tokens = self.text[first : first + min(block, width)].copy()
        wrong = self.rng.random(len(tokens)) >= self.acceptance
        tokens[wrong] ^= 1
        return Draft.point_mass(tokens)


@dataclass
class Found:
    """Of one acceptance (None is plain decoding): seconds a token by round, tokens a cycle by round."""

    acceptance: float | None
    seconds: list[float] = field(default_factory=list)
    per_cycle: list[float] = field(default_factory=list)

    @property
    def rate(self) -> float:
        """Tokens a second, the rounds' median."""
        return 1 / statistics.median(self.seconds)


def plain_text(session: Session, tokens: int) -> list[int]:
    """Random ids and what greedy decoding says after them. RequestError where that ends at once."""
    prompt = random_ids(session.tokenizer.vocab_size, PROMPT, seed=1)
    session.rewind(0)
    for _ in session.generate(prompt, max_tokens=tokens, sampling=GREEDY, draft="off"):
        pass
    text: list[int] = session.history().tolist()
    if len(text) < PROMPT + tokens // 2:
        raise RequestError(f"the text ends after {len(text) - PROMPT} tokens, wanted {tokens}: give a smaller -n")
    return text


def run(session: Session, text: Sequence[int], found: Found, seed: int) -> None:
    """One generation of the text; raises RequestError where it says something else."""
    session.rewind(0)
    draft = "off" if found.acceptance is None else Simulated(text, found.acceptance, seed)
    for _ in session.generate(text[:PROMPT], max_tokens=len(text) - PROMPT, sampling=GREEDY, draft=draft):
        pass
    if session.history().tolist() != list(text):
        raise RequestError(
            "speculation said something else than plain decoding: run where they are the same, on the CPU"
        )
    found.seconds.append(session.stats.generate_seconds / session.stats.generated_tokens)
    found.per_cycle.append(session.stats.speculation.emitted_per_cycle)


def table(all_found: Sequence[Found]) -> str:
    """Markdown: tokens a cycle and a second, and how many times as fast as plain, with the rounds' range."""
    plain = all_found[0]
    lines = ["| acceptance | tokens/cycle | tokens/s | of plain |", "|---|---|---|---|"]
    for found in all_found:
        ratios = sorted(p / s for p, s in zip(plain.seconds, found.seconds, strict=True))
        name = "plain" if found.acceptance is None else f"{found.acceptance:g}"
        lines.append(
            f"| {name} | {statistics.fmean(found.per_cycle):.2f} | {found.rate:.2f} | {found.rate / plain.rate:.2f} "
            f"({ratios[0]:.2f}..{ratios[-1]:.2f}) |"
        )
    return "\n".join(lines)


def arguments(given: Sequence[str] | None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-m", "--model")
    parser.add_argument("-md", "--drafter")
    parser.add_argument("-t", "--threads", type=positive)
    parser.add_argument("-n", "--tokens", type=positive, default=64)
    parser.add_argument(
        "--acceptance", type=lambda text: [share(each) for each in text.split(",")], default=[0.5, 0.7, 0.9]
    )
    parser.add_argument("--rounds", type=positive, default=5)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args(given)
    if args.model and not args.drafter:
        parser.error("a model (-m) needs its drafter (-md): drafts are paid for")
    return args


def main(given: Sequence[str] | None = None) -> None:
    """Runs the bench."""
    args = arguments(given)
    with Engine(args.model, drafter=args.drafter, device="cpu", threads=args.threads) as engine:
        print_header(engine.path, threads=engine.threads, tokens=args.tokens, rounds=args.rounds)
        print(f"drafter  {engine.drafter}\n", flush=True)
        all_found = [Found(None), *map(Found, args.acceptance)]
        with engine.session(context=PROMPT + args.tokens) as session:
            text = plain_text(session, args.tokens)
            for number in range(args.rounds):
                for found in all_found if number % 2 == 0 else reversed(all_found):
                    run(session, text, found, number)
    print(table(all_found))
    if args.json:
        values: list[dict[str, Any]] = [{**vars(found), "tokens_per_second": found.rate} for found in all_found]
        args.json.write_text(json.dumps(values, indent=1))


if __name__ == "__main__":
    main()
