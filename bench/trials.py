"""Examines single texts: whether a long one holds together, and whether questions are answered correctly."""

import argparse
from collections.abc import Sequence
from typing import Any

from pair import Pair
from prompts import CHECKS, Check, prompt
from steady import Config, Text, distinct, repeated_spans

from ds4py import Sampling

LONG_TOKENS = 16_000
ANSWER_TOKENS = 1024


def long_texts(pair: Pair, args: argparse.Namespace) -> dict[str, Any]:
    """Generates a long text for each configuration and temperature. By default it is one, at temperature 1."""
    configs = pair.configs(args.configs or ("dspark" if pair.drafter else "lookup"))
    policies = [Sampling(temperature=each, seed=args.seed) for each in args.temps or [1.0]]
    tokens = args.tokens or LONG_TOKENS
    ids = pair.encode(prompt(args.kinds[0], "long"), chat=False)
    context = pair.open_sessions([ids], tokens)
    header = pair.header(context=context, prompt=args.kinds[0], tokens=tokens, seed=args.seed)
    found = []
    for config in configs:
        for policy in policies:
            text = pair.generate(ids, config, policy, tokens)
            found.append(long_text(pair, config, policy.temperature, text))
            print_long(found[-1])
    return {**header, "texts": found}


def long_text(pair: Pair, config: Config, temperature: float, text: Text) -> dict[str, Any]:
    """Measures how a text ended, how it repeats itself and how fast it was."""
    spans, most = repeated_spans(pair.plain.tokenizer.decode(list(text.tokens)))
    return {
        "config": config.name,
        "temperature": temperature,
        "tokens": len(text.tokens),
        "finish": text.finish,
        "tokens_per_second": text.rate,
        "distinct_4grams": distinct(text.tokens),
        "repeated_12_word_spans": spans,
        "most_frequent_span": most,
        "quarters": [{"tokens_per_second": rate, "distinct_4grams": distinct(part)} for part, rate in text.quarters()],
    }


def print_long(found: dict[str, Any]) -> None:
    """Prints the results of `long_text`."""
    print(
        "\n{config} at temperature {temperature:g}: {tokens} tokens, {tokens_per_second:.2f} a second, end: {finish}\n"
        "{repeated_12_word_spans} repeated spans of 12 words, the most frequent {most_frequent_span} times".format(
            **found
        )
    )
    print(f"{'quarter':>8}{'tokens/s':>10}{'distinct 4-grams':>18}")
    for number, quarter in enumerate(found["quarters"], 1):
        print(f"{number:>8}{quarter['tokens_per_second']:>10.2f}{share(quarter['distinct_4grams']):>18}")


def share(value: float | None) -> str:
    """Formats a share in percent, or a dash."""
    return "-" if value is None else f"{value:.0%}"


def quality(pair: Pair, args: argparse.Namespace) -> dict[str, Any]:
    """Asks every question greedily in the chat layout, once for each configuration."""
    tokens = args.tokens or ANSWER_TOKENS
    if pair.embedded:
        print("no model given (-m FILE): the embedded pair cannot answer questions, so that the checks are skipped")
        return {"checks": None}
    configs = pair.configs("plain," + (args.configs or ("dspark" if pair.drafter else "lookup")))
    questions = [pair.encode(check.question, chat=True) for check in CHECKS]
    context = pair.open_sessions(questions, tokens)
    header = pair.header(context=context, tokens=tokens, temperature=0)
    print("\n" + f"{'question':12}" + "".join(f"{config.name:>24}" for config in configs))
    found = []
    for check, ids in zip(CHECKS, questions, strict=True):
        texts = {config.name: pair.generate(ids, config, Sampling(temperature=0), tokens) for config in configs}
        answers = {name: judged(pair, check, text) for name, text in texts.items()}
        found.append({"name": check.name, "answers": answers})
        print(f"{check.name:12}" + "".join(f"{shown(each):>24}" for each in answers.values()), flush=True)
    print_passed([config.name for config in configs], found)
    return {**header, "checks": found}


def judged(pair: Pair, check: Check, text: Text) -> dict[str, Any]:
    """Checks an answer, and gathers what it took."""
    answer = pair.plain.tokenizer.decode(list(text.tokens))
    return {
        "passed": check.passes(answer),
        "finish": text.finish,
        "tokens": len(text.tokens),
        "tokens_per_second": text.rate,
        "answer": answer,
    }


def shown(answer: dict[str, Any]) -> str:
    """Formats one cell of the table."""
    cut = ", cut" if answer["finish"] == "length" else ""
    return f"{'pass' if answer['passed'] else 'FAIL'}{cut} {answer['tokens_per_second']:.1f} tokens/s"


def print_passed(configs: Sequence[str], found: Sequence[dict[str, Any]]) -> None:
    """Prints how many questions each configuration answered correctly."""
    counts = (sum(each["answers"][name]["passed"] for each in found) for name in configs)
    print(f"{'right':12}" + "".join(f"{f'{count} of {len(found)}':>24}" for count in counts))
