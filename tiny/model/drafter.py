"""The drafter: DSpark stages over the target's features, Markov head, confidence (spec: dspark.md, section 2)."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ..config import NOISE, DraftShape, Shape
from . import ops
from .attention import HIDDEN, Projections
from .layers import Angles, Experts, HyperConnection, Norm, StreamHead, matrix, parameter


class Stage(nn.Module):
    """A layer of the drafter. It differs from the target's in its attention: to the context and to the whole block."""

    def __init__(self, shape: Shape, number: int) -> None:
        super().__init__()
        self.shape = shape
        self.hc_attn, self.hc_ffn = HyperConnection(shape, 2 * number), HyperConnection(shape, 2 * number + 1)
        self.attn_norm, self.ffn_norm = Norm(shape.hidden, shape.epsilon), Norm(shape.hidden, shape.epsilon)
        self.attn = Projections(shape)
        self.ffn = Experts(shape, hashed=False)

    def forward(self, x: Tensor, context: Tensor, anchors: Tensor) -> tuple[Tensor, Tensor]:
        """x [sequences * anchors * block, 4, d], context [sequences, length, d], anchors [sequences, anchors]."""
        block, post, comb = self.hc_attn.read(x)
        rows = self.attn_norm(block).view(*anchors.shape, -1, self.shape.hidden)
        x = ops.post(x, self.attend(rows, context, anchors).flatten(0, 2), post, comb)
        block, post, comb = self.hc_ffn.read(x)
        y, chosen = self.ffn(self.ffn_norm(block), None)
        return ops.post(x, y, post, comb), chosen

    def attend(self, rows: Tensor, context: Tensor, anchors: Tensor) -> Tensor:
        """rows [sequences, anchors, block, d] -> the same; all see the window before the anchor, and the block."""
        shape, (batch, count, width, _) = self.shape, rows.shape
        length = context.shape[1]
        before = self.attn.keys(context, Angles(torch.arange(length), shape.rope_size, shape.rope_base))
        angles = Angles(anchors[..., None] + torch.arange(width), shape.rope_size, shape.rope_base)
        _, queries = self.attn.queries(rows, angles)
        own, scale = self.attn.keys(rows, angles), shape.head_size**-0.5
        past = (queries.flatten(1, 3) @ before.mT * scale).view(batch, count, width * shape.heads, length)
        past = past + context_mask(anchors, length, shape.window)
        inside = queries.flatten(2, 3) @ own.mT * scale
        logits = torch.cat([past, inside], -1).unflatten(2, (width, shape.heads))
        far, near = self.attn.weights(logits).split([length, width], -1)
        seen = (far.reshape(batch, -1, length) @ before).view(queries.shape)
        seen = seen + (near.flatten(2, 3) @ own).view(queries.shape)
        return self.attn.output(seen, angles)


def context_mask(anchors: Tensor, length: int, window: int) -> Tensor:
    """Hides all but the `window` rows before each anchor: [sequences, anchors, 1, length]."""
    position, anchor = torch.arange(length), anchors[..., None]
    return torch.where((position < anchor) & (position >= anchor - window), 0.0, HIDDEN)[:, :, None]


@dataclass
class Draft:
    """logits [sequences, anchors, block, vocab] with the Markov bias, confidences as logits [..., block], experts."""

    logits: Tensor
    confidence: Tensor
    chosen: list[Tensor]


class Drafter(nn.Module):
    """A DSpark drafter for a target of `shape`, whose embedding and head it shares."""

    def __init__(self, shape: Shape, draft: DraftShape) -> None:
        super().__init__()
        self.shape, self.draft = shape, draft
        self.main_proj = matrix(shape.hidden, shape.hidden * len(draft.taps))
        self.main_norm = Norm(shape.hidden, shape.epsilon)
        self.stages = nn.ModuleList(Stage(shape, number) for number in range(draft.stages))
        self.hc_head = StreamHead(shape)
        self.norm = Norm(shape.hidden, shape.epsilon)
        self.markov_w1 = parameter(shape.vocab, draft.rank, deviation=0.5)
        self.markov_w2 = parameter(shape.vocab, draft.rank, deviation=0.02)
        self.confidence = parameter(1, shape.hidden + draft.rank)

    def forward(self, target: nn.Module, features: Tensor, anchors: Tensor, previous: Tensor) -> Draft:
        """Drafts behind anchors.

        `features` is [sequences, length, taps * d]. `anchors` [sequences, anchors] are positions. `previous`
        [sequences, anchors, block] are the tokens before each slot, with the anchor's own first.
        """
        context = self.main_norm(self.main_proj(features))
        tokens = torch.full_like(previous, NOISE)
        tokens[..., 0] = previous[..., 0]
        x = F.embedding(tokens.flatten(), target.embed.detach())[:, None].repeat(1, self.shape.streams, 1)
        chosen = []
        for stage in self.stages:
            x, used = stage(x, context, anchors)
            chosen.append(used)
        hidden = self.hc_head(x).view(*previous.shape, -1)
        before = F.embedding(previous, self.markov_w1)
        logits = F.linear(self.norm(hidden), target.head.weight.detach()) + before @ self.markov_w2.t()
        # The confidence reads the hidden state, but its gradient must not change how proposals are made.
        read = torch.cat([hidden, before], -1).detach()
        return Draft(logits, (read @ self.confidence.t()).squeeze(-1), chosen)
