"""Attention of the target: a sliding window, compressed rows behind it, one key-value head, sinks."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ..config import Shape
from . import ops
from .compressor import Compressor, Indexer, visible
from .layers import Angles, Norm, matrix, parameter, rotate

HIDDEN = -1e30
"""Added to the logits of what must not be seen."""


class Projections(nn.Module):
    """The projections of attention: queries, the one key-value head, sinks, and the grouped output."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.shape, size = shape, shape.heads * shape.head_size
        per_group, ranks = size // shape.output_groups, shape.output_groups * shape.output_rank
        self.wq_a = matrix(shape.query_rank, shape.hidden)
        self.q_norm = Norm(shape.query_rank, shape.epsilon)
        self.wq_b = matrix(size, shape.query_rank)
        self.wkv = matrix(shape.head_size, shape.hidden)
        self.kv_norm = Norm(shape.head_size, shape.epsilon)
        self.wo_a = matrix(ranks, per_group)
        self.wo_b = matrix(shape.hidden, ranks, 0.5 / ranks**0.5)
        self.attn_sink = parameter(shape.heads)

    def queries(self, x: Tensor, angles: Angles) -> tuple[Tensor, Tensor]:
        """x [..., d] -> low-rank queries [..., rank] (the indexer's, too), queries [..., heads, size]."""
        low = self.q_norm(self.wq_a(x))
        heads = self.wq_b(low).unflatten(-1, (self.shape.heads, self.shape.head_size))
        return low, rotate(ops.norm(heads, None, self.shape.epsilon), angles.heads())

    def keys(self, x: Tensor, angles: Angles) -> Tensor:
        """x [..., d] -> keys, which are the values, too, [..., size]."""
        return rotate(self.kv_norm(self.wkv(x)), angles)

    def weights(self, logits: Tensor) -> Tensor:
        """Softmax of logits [..., heads, keys], with each head's sink in the denominator only."""
        sinks = self.attn_sink[:, None].expand(*logits.shape[:-1], 1)
        return torch.cat([logits, sinks], -1).softmax(-1)[..., :-1]

    def output(self, heads: Tensor, angles: Angles) -> Tensor:
        """[..., heads, size] -> [..., d]."""
        turned = rotate(heads, angles.heads(), back=True)
        groups = turned.reshape(-1, self.shape.output_groups, self.wo_a.in_features).transpose(0, 1)
        low = torch.bmm(groups, self.wo_a.weight.view(len(groups), -1, self.wo_a.in_features).mT)
        return self.wo_b(low.transpose(0, 1).reshape(*heads.shape[:-2], -1))


class Attention(nn.Module):
    """A target's attention over whole sequences; their length is a multiple of the window."""

    def __init__(self, shape: Shape, ratio: int) -> None:
        super().__init__()
        self.shape, self.ratio = shape, ratio
        self.project = Projections(shape)
        self.compressor = Compressor(shape, ratio, shape.head_size) if ratio else None
        self.indexer = Indexer(shape) if ratio == 4 else None

    def angles(self, positions: Tensor) -> Angles:
        """Returns the angles of positions. Layers that compress have a RoPE base of their own."""
        base = self.shape.compress_rope_base if self.ratio else self.shape.rope_base
        return Angles(positions, self.shape.rope_size, base)

    def forward(self, x: Tensor, indexed: bool) -> tuple[Tensor, Tensor]:
        """x [sequences, length, d] -> the same, and the indexer's loss (0 where there is none, or not `indexed`)."""
        batch, length, _ = x.shape
        positions = torch.arange(length)
        angles = self.angles(positions)
        low, queries = self.project.queries(x, angles)
        keys = self.project.keys(x, angles)
        window = self.shape.window
        chunks = keys.unflatten(1, (length // window, window))
        local = torch.cat([F.pad(chunks[:, :-1], (0, 0, 0, 0, 1, 0)), chunks], 2)
        rows = queries.reshape(batch, len(positions) // window, window * self.shape.heads, -1)
        scale = self.shape.head_size**-0.5
        logits = (rows @ local.mT * scale).unflatten(2, (window, -1)) + window_mask(length, window)
        if self.compressor is None:
            weights = self.project.weights(logits)
            seen = (weights.flatten(2, 3) @ local).reshape(queries.shape)
            return self.project.output(seen, angles), x.new_zeros(())
        packed = self.compressor(x)
        distant = (queries.flatten(1, 2) @ packed.mT * scale).unflatten(1, (length, -1))
        mask, loss = self.select(x, low, angles, distant, positions, indexed)
        distant = (distant + mask).view(*logits.shape[:-1], -1)
        weights = self.project.weights(torch.cat([logits, distant], -1))
        near, far = weights.split([logits.shape[-1], distant.shape[-1]], -1)
        seen = (near.flatten(2, 3) @ local).reshape(queries.shape)
        seen = seen + (far.reshape(batch, length * self.shape.heads, -1) @ packed).view(queries.shape)
        return self.project.output(seen, angles), loss

    def select(
        self, x: Tensor, low: Tensor, angles: Angles, logits: Tensor, positions: Tensor, indexed: bool
    ) -> tuple[Tensor, Tensor]:
        """Returns the mask of compressed rows, for [sequences, length, heads, rows], and the indexer's loss."""
        seen = visible(positions, logits.shape[-1], self.ratio)
        mask = torch.where(seen, 0.0, HIDDEN)[None, :, None]
        cut = logits.shape[-1] > self.shape.index_top_k
        if self.indexer is None or not (indexed or cut):
            return mask, x.new_zeros(())
        scores = self.indexer(x.detach(), low.detach(), angles).masked_fill(~seen, HIDDEN)
        loss = self.indexer.loss(scores, (logits.detach() + mask)) if indexed else x.new_zeros(())
        if cut:
            order = scores.detach().argsort(dim=-1, descending=True, stable=True)  # of ties, the first
            chosen = order[..., : self.shape.index_top_k]
            mask = mask + torch.full_like(scores, HIDDEN).scatter(-1, chosen, 0.0)[:, :, None]
        return mask, loss


def window_mask(length: int, window: int) -> Tensor:
    """Hides from chunk c's row i what is outside its window, of the chunk before and its own: [c, i, 1, 2 * window]."""
    row, key = torch.arange(window)[:, None], torch.arange(2 * window)[None] - window
    inside = (key <= row) & (key > row - window)
    there = torch.arange(length // window)[:, None, None] * window + key >= 0
    return torch.where(inside & there, 0.0, HIDDEN)[:, :, None]
