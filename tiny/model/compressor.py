"""Makes the compressed rows of a layer, and chooses among them with the indexer."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ..config import Shape
from .layers import Angles, Norm, matrix, parameter, rotate


class Compressor(nn.Module):
    """Makes one row of `ratio` tokens, and of the tokens before them where the ratio is 4 (blocks overlap)."""

    def __init__(self, shape: Shape, ratio: int, size: int) -> None:
        super().__init__()
        self.shape, self.ratio, self.size = shape, ratio, size
        width = size * (2 if ratio == 4 else 1)
        self.wkv = matrix(width, shape.hidden)
        self.wgate = matrix(width, shape.hidden, 0.02)
        self.ape = parameter(ratio, width)
        self.norm = Norm(size, shape.epsilon)

    def forward(self, x: Tensor) -> Tensor:
        """Compresses x [sequences, length, d] to [sequences, length // ratio, size].

        An incomplete block gives no row.
        """
        packed = self.pack(x)
        positions = torch.arange(packed.shape[1]) * self.ratio
        return rotate(packed, Angles(positions, self.shape.rope_size, self.shape.compress_rope_base))

    def pack(self, x: Tensor) -> Tensor:
        """Computes the rows before rotation, where a row does not depend on its position."""
        count = x.shape[1] // self.ratio
        blocks = x[:, : count * self.ratio].unflatten(1, (count, self.ratio))
        values, gates = self.wkv(blocks), self.wgate(blocks) + self.ape
        if self.ratio == 4:
            values, gates = self.overlap(values, 0.0), self.overlap(gates, -1e30)
        return self.norm((values * gates.softmax(2)).sum(2))

    def overlap(self, blocks: Tensor, before: float) -> Tensor:
        """Joins the first half of each previous block's components with the second half of each block's own."""
        first, second = blocks.chunk(2, -1)
        return torch.cat([F.pad(first[:, :-1], (0, 0, 0, 0, 1, 0), value=before), second], 2)


class Indexer(nn.Module):
    """Scores compressed rows of ratio 4 for each query."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.shape = shape
        self.wq_b = matrix(shape.index_heads * shape.index_size, shape.query_rank)
        self.weights_proj = matrix(shape.index_heads, shape.hidden)
        self.compressor = Compressor(shape, 4, shape.index_size)

    def forward(self, x: Tensor, low: Tensor, angles: Angles) -> Tensor:
        """x [sequences, length, d], low-rank queries -> scores [sequences, length, rows]."""
        heads, size = self.shape.index_heads, self.shape.index_size
        queries = rotate(self.wq_b(low).unflatten(-1, (heads, size)), angles.heads())
        products = F.relu(queries.flatten(1, 2) @ self.compressor(x).mT).unflatten(1, (-1, heads))
        return (products * self.weights_proj(x)[..., None] * (heads * size) ** -0.5).sum(2)

    def loss(self, scores: Tensor, logits: Tensor) -> Tensor:
        """Cross-entropy of the scores to the attention's mean over heads (queries that see no row count as 0).

        The language model's loss has no gradient for the indexer: a choice has none. `logits` [..., heads, rows].
        """
        wanted = logits.softmax(-1).mean(-2)
        seen = scores > -1e29
        lost = -(wanted * scores.log_softmax(-1).clamp(min=-50) * seen).sum(-1)
        return lost.mean()


def visible(positions: Tensor, rows: int, ratio: int) -> Tensor:
    """Tells whether a query sees a row, as [positions, rows]. A block is seen from its last token on."""
    return torch.arange(rows)[None] < ((positions + 1) // ratio)[:, None]
