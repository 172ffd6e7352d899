"""Trains the target: next-token loss, the indexer's loss on longer sequences, balanced experts."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import torch
import torch.distributed as dist
from torch import Tensor
from torch.nn import functional as F

from ..config import DOMAINS, INDEXED, PHASES, Phase, Shape
from ..model.target import Output, Target
from . import checkpoint
from .balance import balance
from .data import Corpus, heldout
from .optimisers import Optimisers
from .processes import average, is_first
from .report import Report

INDEX_LOSS = 0.1
SAVE_EVERY, EVALUATE_EVERY = 200, 1000


def train(rank: int, work: Path, tokens: int, seed: int) -> None:
    """Runs one process of the training. It ends with `work/target.pt`."""
    torch.manual_seed(seed)
    shape = Shape()
    model, corpus = Target(shape), Corpus(work, seed)
    optimisers, settings = Optimisers(model), checkpoint.Settings(asdict(shape), tokens, seed)
    step = checkpoint.resume(work / "target.checkpoint", model, optimisers, settings)
    done = seen_after(step, tokens)
    report = Report(work / "target.log", tokens, done)
    while done < tokens:
        phase = phase_at(done / tokens)
        share = phase.batch // dist.get_world_size()
        windows = corpus.windows(step, rank, share, phase.length + 1)
        output, loss = forward(model, windows, phase.length >= INDEXED)
        average([parameter.grad for parameter in model.parameters() if parameter.grad is not None])
        factor = optimisers.step(step, done / tokens)
        balance((layer.ffn for layer in model.layers), output.chosen, factor)
        step, done = step + 1, done + phase.length * phase.batch
        report.add(step, done, loss=loss, index_loss=float(output.index_loss.detach()), rate=factor)
        if is_first() and step % SAVE_EVERY == 0:
            checkpoint.save(work / "target.checkpoint", step, model, optimisers, settings)
        if is_first() and step % EVALUATE_EVERY == 0:
            report.line(losses(model, work))
    if is_first():
        report.line(losses(model, work))
        checkpoint.write(work / "target.pt", model.state_dict())


def forward(model: Target, windows: Tensor, indexed: bool) -> tuple[Output, float]:
    """Computes the gradients of the loss of windows [sequences, length + 1].

    Returns the output, and the loss in nats per token.
    """
    output = model(windows[:, :-1], indexed=indexed)
    loss = F.cross_entropy(model.head(output.hidden), windows[:, 1:].flatten())
    (loss + INDEX_LOSS * output.index_loss).backward()
    # A phase without the indexer leaves its parameters without gradients; optimisers take zeros.
    for parameter in model.parameters():
        if parameter.grad is None:
            parameter.grad = torch.zeros_like(parameter)
    return output, float(loss.detach())


def phase_at(done: float) -> Phase:
    """Returns the phase for a share of the tokens."""
    return next(phase for phase in PHASES if done < phase.until)


def seen_after(steps: int, tokens: int) -> int:
    """Returns the tokens of the first `steps` steps."""
    done = 0
    for _ in range(steps):
        phase = phase_at(done / tokens)
        done += phase.length * phase.batch
    return done


@torch.no_grad()
def losses(model: Target, work: Path) -> dict[str, object]:
    """Returns the nats per token on held-out text by domain."""
    found: dict[str, object] = {}
    for domain in DOMAINS:
        windows = heldout(work, domain, 8, 512 + 1)
        logits = model.logits(windows[:, :-1])
        found[domain] = round(float(F.cross_entropy(logits.flatten(0, 1), windows[:, 1:].flatten())), 4)
    return found
