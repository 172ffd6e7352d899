"""Writes the model card of a trained pair."""

from __future__ import annotations

import json
from pathlib import Path

from .config import DraftShape, Shape
from .corpus import licences
from .evaluation import Evaluation, sample_texts, tables

HEADER = """\
# DS4 tiny: a DeepSeek-V4 target and its DSpark drafter, for a first look

A small model of the DeepSeek-V4 architecture, trained from scratch on {tokens:.1f} million tokens from a corpus of
{characters:.0f} million characters, and a DSpark drafter for it, trained in {steps} steps, half of it on texts that the
target wrote. `ds4py` runs the pair when no model is given. It is there to show, on any machine and with real text, how
the runtime and speculative decoding behave: which proposals are accepted, what that brings, and on what kind of text.
**It knows nothing**: its code looks like Python for a few lines, its prose like prose, its tables keep their columns.
Do not use it for anything that should be true.

| | target | drafter |
| :-- | --: | --: |
| file | {target_size:.1f} MB | {drafter_size:.1f} MB |
| architecture | {layers} layers, compression ratios {ratios} | {stages} stages, blocks of {block}, Markov rank {rank} |
| hidden size | {hidden} | {hidden} |
| experts | {experts}, {used} used, and a shared one | {experts}, {used} used, and a shared one |
| sliding window | {window} | {window} |
| vocabulary | {vocab} | shared, with the head |
| types | Q8_0; routers and compressors BF16 | the same |

Everything of the architecture is real: four residual streams with hyper-connections, compressors of both ratios with
the indexer, routing by table in the first {hashed} layers and by biased scores after, attention sinks, grouped output
projections. Made by `python -m tiny` (see `tiny/README.md`).
"""

LICENCE = """\
## Licence and sources

The weights are under the project's own licence (MIT). They were trained on the texts below, of which they hold no
copies; "generated" texts come from the recipe's own generators.

| domain | source | version | licence | characters |
| :-- | :-- | :-- | :-- | --: |
"""


def card(work: Path) -> str:
    """Returns the card in Markdown, from a work folder in which every stage is complete."""
    shape, draft, sources = Shape(), DraftShape(), licences(work)
    evaluation = Evaluation.read(work / "evaluation.json")
    header = HEADER.format(
        tokens=amount(work / "target.log") / 1e6, steps=amount(work / "drafter.log"),
        characters=sum(int(source["characters"]) for source in sources) / 1e6,
        target_size=(work / "tiny-target.gguf").stat().st_size / 1e6,
        drafter_size=(work / "tiny-drafter.gguf").stat().st_size / 1e6,
        layers=shape.layers, ratios=", ".join(map(str, shape.ratios)), hidden=shape.hidden, experts=shape.experts,
        used=shape.experts_used, window=shape.window, vocab=shape.vocab, hashed=shape.hash_layers,
        stages=draft.stages, block=draft.block, rank=draft.rank,
    )  # fmt: skip
    rows = "".join(
        f"| {s['domain']} | {s['source']} | {s['version']} | {s['licence']} | {s['characters']:,} |\n" for s in sources
    )
    parts = (header, "## What it was measured to do\n", tables(evaluation), LICENCE + rows, "## Samples\n")
    return "\n".join((*parts, sample_texts(evaluation)))


def amount(log: Path) -> int:
    """Returns the amount of work in the last line of a training's log."""
    lines = map(json.loads, log.read_text(encoding="utf-8").splitlines())
    return max(int(line["done"]) for line in lines if "done" in line)
