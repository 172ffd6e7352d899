"""Trains the drafter on the frozen target (docs/dspark.md describes the drafter)."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import torch
import torch.distributed as dist
from torch import Tensor
from torch.nn import functional as F

from ..config import DraftShape, Shape
from ..model.drafter import Draft, Drafter
from ..model.target import Target
from . import checkpoint
from .balance import balance
from .optimisers import Optimisers
from .processes import average, is_first
from .report import Report
from .teacher import Lesson, Teacher

SEQUENCES, ANCHORS = 6, 40
"""The texts of a step over all processes, and the anchors in each."""
SLOT_WEIGHT = 0.85
CONFIDENCE_LOSS, SAVE_EVERY = 0.3, 200
CALIBRATED = (0.7, 1.0)
"""The temperatures whose mean acceptance the confidence learns."""


def train(rank: int, work: Path, steps: int, seed: int) -> None:
    """Runs one process of the training. It ends with `work/drafter.pt`."""
    torch.manual_seed(seed)
    shape, draft = Shape(), DraftShape()
    target = checkpoint.load_model(work / "target.pt", Target(shape)).requires_grad_(False)
    model, teacher = Drafter(shape, draft), Teacher(work, rank)
    model.norm.load_state_dict(target.norm.state_dict())
    optimisers, settings = Optimisers(model), checkpoint.Settings(asdict(draft), steps, seed)
    step = checkpoint.resume(work / "drafter.checkpoint", model, optimisers, settings)
    report = Report(work / "drafter.log", steps, step)
    while step < steps:
        rng = torch.Generator().manual_seed((seed * steps + step) * 64 + rank)
        lesson = teacher.lesson(SEQUENCES // dist.get_world_size(), step, rng)
        made, parts = forward(target, model, lesson, anchors(lesson, rng), late=step > steps // 2)
        average([parameter.grad for parameter in model.parameters()])
        factor = optimisers.step(step, step / steps)
        balance((stage.ffn for stage in model.stages), made.chosen, factor)
        step += 1
        report.add(step, step, rate=factor, **parts)
        if is_first() and step % SAVE_EVERY == 0:
            checkpoint.save(work / "drafter.checkpoint", step, model, optimisers, settings)
    if is_first():
        checkpoint.write(work / "drafter.pt", model.state_dict())


def anchors(lesson: Lesson, rng: torch.Generator) -> Tensor:
    """Draws positions [sequences, ANCHORS] with a block behind each."""
    count, length = lesson.tokens.shape
    last = length - DraftShape().block - 1
    share = torch.rand(count, ANCHORS, generator=rng)
    return (lesson.first[:, None] + share * (last - lesson.first[:, None])).long()


def forward(
    target: Target, model: Drafter, lesson: Lesson, positions: Tensor, late: bool
) -> tuple[Draft, dict[str, float]]:
    """Computes the gradients of one step's loss, with teacher forcing: the token before each slot is the true one."""
    block = model.draft.block
    slots = positions[..., None] + torch.arange(block)
    rows = torch.arange(len(slots))[:, None, None]
    with torch.no_grad():
        wanted = target.head(lesson.hidden[rows, slots])
    made = model(target, lesson.features, positions, lesson.tokens[rows, slots])
    log_p, log_q = wanted.log_softmax(-1), made.logits.log_softmax(-1)
    overlap = torch.minimum(log_p.exp(), log_q.exp()).sum(-1)
    divergence = F.kl_div(log_q, log_p, reduction="none", log_target=True).sum(-1)
    accepted = torch.stack([overlap_at(wanted, made.logits.detach(), t) for t in CALIBRATED]).mean(0)
    confidence = F.binary_cross_entropy_with_logits(made.confidence, accepted, reduction="none")
    share = 1.0 if late else 0.5  # of total variation, which equals rejection; divergence learns faster at first
    loss = divergence * (1.5 - share) + 2 * share * (1 - overlap) + CONFIDENCE_LOSS * confidence
    weights = SLOT_WEIGHT ** torch.arange(block)
    (loss.mean((0, 1)) * weights / weights.sum()).sum().backward()
    by_slot = overlap.detach().mean((0, 1))
    return made, {"loss": float(loss.detach().mean()), **{f"accept{k + 1}": float(v) for k, v in enumerate(by_slot)}}


def overlap_at(p: Tensor, q: Tensor, temperature: float) -> Tensor:
    """Returns the probability that a proposal is accepted at a temperature, from logits [..., vocab]."""
    return torch.minimum((p / temperature).softmax(-1), (q / temperature).softmax(-1)).sum(-1)
