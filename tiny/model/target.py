"""Defines the target: embedding, layers, head."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ..config import Shape
from . import ops
from .attention import Attention
from .layers import Experts, HyperConnection, Norm, StreamHead, matrix, parameter


class Layer(nn.Module):
    """Attention, then experts, each read from and written to the residual streams."""

    def __init__(self, shape: Shape, number: int) -> None:
        super().__init__()
        self.hc_attn, self.hc_ffn = HyperConnection(shape, 2 * number), HyperConnection(shape, 2 * number + 1)
        self.attn_norm, self.ffn_norm = Norm(shape.hidden, shape.epsilon), Norm(shape.hidden, shape.epsilon)
        self.attn = Attention(shape, shape.ratios[number])
        self.ffn = Experts(shape, hashed=number < shape.hash_layers)

    def forward(self, x: Tensor, tokens: Tensor, indexed: bool) -> tuple[Tensor, Tensor, Tensor]:
        """x [n, 4, d], tokens [sequences, length] -> the same, experts used [n, used], the indexer's loss."""
        block, post, comb = self.hc_attn.read(x)
        seen, loss = self.attn(self.attn_norm(block).view(*tokens.shape, -1), indexed)
        x = ops.post(x, seen.flatten(0, 1), post, comb)
        block, post, comb = self.hc_ffn.read(x)
        y, chosen = self.ffn(self.ffn_norm(block), tokens.flatten())
        return ops.post(x, y, post, comb), chosen, loss


@dataclass
class Output:
    """The result of a forward pass.

    Attributes:
        hidden: [n, d] after the norm.
        features: [n, taps * d], or None.
        experts: the experts used, by layer.
        loss: the loss of the indexer.
    """

    hidden: Tensor
    features: Tensor | None
    chosen: list[Tensor]
    index_loss: Tensor


class Target(nn.Module):
    """A DeepSeek-V4 of the given shape."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.shape = shape
        self.embed = parameter(shape.vocab, shape.hidden, deviation=0.5)
        self.layers = nn.ModuleList(Layer(shape, number) for number in range(shape.layers))
        self.hc_head = StreamHead(shape)
        self.norm = Norm(shape.hidden, shape.epsilon)
        self.head = matrix(shape.vocab, shape.hidden, 0.02)

    def forward(self, tokens: Tensor, taps: tuple[int, ...] = (), indexed: bool = False) -> Output:
        """Tokens [sequences, length]; features are the streams' mean after each of `taps`."""
        x = F.embedding(tokens.flatten(), self.embed)[:, None].repeat(1, self.shape.streams, 1)
        features, chosen, loss = [], [], x.new_zeros(())
        for number, layer in enumerate(self.layers):
            x, used, more = layer(x, tokens, indexed)
            chosen.append(used)
            loss = loss + more
            if number in taps:
                features.append(x.mean(1))
        return Output(self.norm(self.hc_head(x)), torch.cat(features, -1) if features else None, chosen, loss)

    def logits(self, tokens: Tensor) -> Tensor:
        """[sequences, length] -> [sequences, length, vocab]."""
        return self.head(self.forward(tokens).hidden).view(*tokens.shape, -1)
