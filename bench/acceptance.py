"""Measures the speed of speculation at given acceptance rates, by draft length, with replaced proposals.

Usage: acceptance.py [-m TARGET.gguf -md DRAFTER.gguf] [-t THREADS] [-n 64] [--acceptance 0,0.1,...,1]
                     [--draft-lengths auto,1,2,3,4,5] [--sure 0] [--switch 0] [--rounds 3] [--json FILE]
The text is what plain decoding says after a few random ids. Every draft is paid for, but what is proposed is the text
itself, each token with the given probability and else another. Plain decoding and all draft lengths take turns. Times
are of decoding alone, and costs are measured once before. Ratios are geometric means over the rounds. With --sure S the
drafter has confidences: these follow a beta distribution with the acceptance a as its mean and the variance
a (1 - a) S / (1 + S). --switch N adds a text whose acceptance changes between 0.9 and 0.2 every N tokens, and a policy
that knows it and takes the best draft length of each. Without -m it runs the embedded pair.
"""

import argparse
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean, geometric_mean
from typing import Any

import numpy as np
from arguments import position, positive, share
from machine import print_header
from rows import random_ids

from ds4py import Engine, RequestError, Sampling, Session
from ds4py.profile import measure
from ds4py.speculative import Costs, Draft, DraftEstimate, DraftLengthPolicy, DraftRequest, Fixed, as_draft_length

PROMPT = 32
GREEDY = Sampling(temperature=0)
HIGH, LOW = 0.9, 0.2

Acceptance = Callable[[int], float]
"""By the number of tokens generated before."""


class Simulated:
    """Pays for a draft, then proposes what is known to follow, with so many errors."""

    name = "simulated"

    def __init__(self, text: Sequence[int], acceptance: Acceptance, sure: float, seed: int) -> None:
        self.text, self.acceptance, self.sure = np.array(text, np.int32), acceptance, sure
        self.rng = np.random.default_rng(seed)

    def propose(self, session: Session, request: DraftRequest, draft_length: int) -> Draft:
        """Returns the text's next tokens; a wrong one is the right one's neighbour."""
        block = len(session.draft())
        first = len(session.history())
        tokens = self.text[first : first + min(block, draft_length)].copy()
        chances = self.chances(self.acceptance(first - PROMPT), len(tokens))
        tokens[self.rng.random(len(tokens)) >= chances] ^= 1
        return Draft.point_mass(tokens, chances.astype(np.float32) if self.sure else None)

    def chances(self, mean: float, count: int) -> np.ndarray[Any, np.dtype[np.float64]]:
        """Returns the chance of each proposal: all alike, or around the acceptance."""
        if not self.sure or not 0 < mean < 1:
            return np.full(count, mean)
        return self.rng.beta(mean / self.sure, (1 - mean) / self.sure, count)


class Knowing(DraftLengthPolicy):
    """Takes the best draft length for the present acceptance; it knows when that changes."""

    def __init__(self, draft_lengths: Sequence[int], length: int, session: Session) -> None:
        self.draft_lengths, self.length, self.session = draft_lengths, length, session

    def choose(self, estimate: DraftEstimate) -> int:
        """Returns the draft length of the phase that the text is in."""
        return self.draft_lengths[phase(self.session.position + 1 - PROMPT, self.length)]


def phase(generated: int, length: int) -> int:
    """Returns 0 where acceptance is high and 1 where it is low."""
    return generated // length % 2


@dataclass
class Found:
    """Seconds a token and tokens a cycle, by round, at one acceptance and draft length (None is plain decoding)."""

    acceptance: str
    draft_length: str | None
    seconds: list[float] = field(default_factory=list)
    per_cycle: list[float] = field(default_factory=list)

    def times(self, other: "Found") -> float:
        """Returns how many times as fast as `other` it is."""
        return geometric_mean(b / a for a, b in zip(self.seconds, other.seconds, strict=True))


@dataclass
class Case:
    """One row of the table: an acceptance, plain decoding and the draft lengths."""

    name: str
    acceptance: Acceptance
    plain: Found
    found: dict[str, Found]

    @classmethod
    def of(cls, name: str, acceptance: Acceptance, draft_lengths: Sequence[str]) -> "Case":
        """Makes a row in which nothing is measured yet."""
        return cls(name, acceptance, Found(name, None), {each: Found(name, each) for each in draft_lengths})

    @property
    def fastest(self) -> Found:
        """Plain decoding, or the fixed draft length that was faster."""
        return self.found[str(self.best)] if self.best else self.plain

    @property
    def best(self) -> int:
        """The fixed draft length that was fastest; 0 where plain decoding was."""
        fixed = {int(name): each.times(self.plain) for name, each in self.found.items() if name.isdigit()}
        best = max(fixed, key=lambda draft_length: fixed[draft_length], default=0)
        return best if fixed and fixed[best] > 1 else 0


class Runs:
    """Generates one text again and again."""

    def __init__(self, session: Session, tokens: int, sure: float) -> None:
        self.session, self.sure = session, sure
        self.text = plain_text(session, tokens)

    def measure(self, case: Case, rounds: int, policies: dict[str, DraftLengthPolicy]) -> None:
        """Measures all draft lengths of a case, in turn."""
        for number in range(rounds):
            turn: list[tuple[Found, DraftLengthPolicy]] = [(case.plain, Fixed(0))]
            turn += [(case.found[name], policies[name]) for name in case.found]
            for found, draft_length in turn if number % 2 == 0 else reversed(turn):
                self.run(found, Simulated(self.text, case.acceptance, self.sure, number), draft_length)

    def run(self, found: Found, drafter: Simulated, draft_length: DraftLengthPolicy) -> None:
        """One generation of the text; raises RequestError where it says something else."""
        self.session.rewind(0)
        draft = "off" if found.draft_length is None else drafter
        tokens = len(self.text) - PROMPT
        for _ in self.session.generate(
            self.text[:PROMPT], max_tokens=tokens, sampling=GREEDY, draft=draft, draft_length=draft_length
        ):
            pass
        if self.session.history().tolist() != list(self.text):
            raise RequestError(
                "speculation said something else than plain decoding: run where they are the same, on the CPU"
            )
        found.seconds.append(self.session.stats.generate_seconds / self.session.stats.generated_tokens)
        found.per_cycle.append(self.session.stats.speculation.emitted_per_cycle)


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


def teach(engine: Engine) -> None:
    """Measures the costs, whatever earlier runs have left; what the simulated drafter costs is a draft."""
    engine.costs = Costs()
    profile = measure(engine, [0])
    for _ in range(3):
        engine.costs.add_draft(0, Simulated.name, (profile.depths[0].draft_ms or 0) / 1000)
    depth = profile.depths[0]
    print("verify   " + " ".join(f"{ms:.1f}" for ms in depth.verify_ms) + f" ms, draft {depth.draft_ms or 0:.1f} ms")


def head(draft_lengths: Sequence[str]) -> str:
    """Returns the table's first lines; speeds are relative to plain decoding."""
    names = [f"draft length {each}" if each.isdigit() else each for each in draft_lengths]
    columns = ["acceptance", "plain tokens/s", *names]
    if "auto" in draft_lengths:
        columns += ["auto of the best draft length", "tokens/cycle, auto"]
    return "| " + " | ".join(columns) + " |\n|" + "---|" * len(columns)


def line(case: Case, against: Found | None = None) -> str:
    """Returns a row; `auto` is compared with `against`, or with the best of plain decoding and fixed draft lengths."""
    cells = [case.name, f"{1 / fmean(case.plain.seconds):.2f}"]
    cells += [f"{each.times(case.plain):.2f}" for each in case.found.values()]
    if "auto" in case.found:
        auto = case.found["auto"]
        cells += [f"{auto.times(against or case.fastest):.2f}", f"{fmean(auto.per_cycle):.2f}"]
    return "| " + " | ".join(cells) + " |"


def cases(args: argparse.Namespace) -> Iterator[Case]:
    """Yields a case for each constant acceptance."""
    for each in args.acceptance:
        yield Case.of(f"{each:g}", lambda _, each=each: each, args.draft_lengths)  # type: ignore[misc]


def switching(runs: Runs, args: argparse.Namespace, done: Sequence[Case]) -> Case:
    """Measures the text whose acceptance changes, with `auto` and with a policy that knows the changes."""
    best = [next(case.best for case in done if case.name == f"{each:g}") for each in (HIGH, LOW)]
    case = Case.of(
        f"{HIGH:g} / {LOW:g}", lambda n: (HIGH, LOW)[phase(n, args.switch)], ["auto", f"knowing {best[0]}/{best[1]}"]
    )
    knowing = Knowing(best, args.switch, runs.session)
    runs.measure(case, args.rounds, dict(zip(case.found, (as_draft_length("auto"), knowing), strict=True)))
    return case


def policy(name: str) -> DraftLengthPolicy:
    """Returns the policy of a number or a name. Raises RequestError for anything else."""
    return as_draft_length(int(name) if name.isdigit() else name)


def draft_lengths(text: str) -> list[str]:
    """Converts numbers and names of policies, separated by commas."""
    names = text.split(",")
    for name in names:
        try:
            policy(name)
        except RequestError as error:
            raise argparse.ArgumentTypeError(str(error)) from None
    return names


def arguments(given: Sequence[str] | None) -> argparse.Namespace:
    """Parses the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-m", "--model")
    parser.add_argument("-md", "--drafter")
    parser.add_argument("-t", "--threads", type=positive)
    parser.add_argument("-n", "--tokens", type=positive, default=64)
    parser.add_argument(
        "--acceptance", type=lambda text: [share(each) for each in text.split(",")], default=[i / 10 for i in range(11)]
    )
    parser.add_argument("--draft-lengths", type=draft_lengths, default=draft_lengths("auto,1,2,3,4,5"))
    parser.add_argument("--sure", type=share, default=0.0)
    parser.add_argument("--switch", type=position, default=0)
    parser.add_argument("--rounds", type=positive, default=3)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args(given)
    if args.model and not args.drafter:
        parser.error("a model (-m) needs its drafter (-md): drafts are paid for")
    if args.switch and not {HIGH, LOW} <= set(args.acceptance):
        parser.error(f"--switch needs {HIGH} and {LOW} among --acceptance")
    return args


def main(given: Sequence[str] | None = None) -> None:
    """Runs the bench."""
    args = arguments(given)
    with Engine(args.model, drafter=args.drafter, device="cpu", threads=args.threads) as engine:
        print_header(engine.path, threads=engine.threads, tokens=args.tokens, rounds=args.rounds)
        print(f"drafter  {engine.drafter}")
        teach(engine)
        done: list[Case] = []
        policies = {name: policy(name) for name in args.draft_lengths}
        with engine.session(context=PROMPT + args.tokens + 1) as session:
            runs = Runs(session, args.tokens, args.sure)
            print("\n" + head(args.draft_lengths), flush=True)
            for case in cases(args):
                runs.measure(case, args.rounds, policies)
                done.append(case)
                print(line(case), flush=True)
            if args.switch:
                done.append(changing := switching(runs, args, done))
                _, knowing = changing.found.values()
                print("\n" + head(list(changing.found)) + "\n" + line(changing, knowing))
    if args.json:
        values: list[dict[str, Any]] = [vars(each) for case in done for each in (case.plain, *case.found.values())]
        args.json.write_text(json.dumps(values, indent=1))


if __name__ == "__main__":
    main()
