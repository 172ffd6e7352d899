"""Holds what targets and drafters share: norms, rotary embedding, hyper-connections, mixture of experts."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ..config import Shape
from . import ops


def matrix(rows: int, columns: int, deviation: float | None = None) -> nn.Linear:
    """Makes a linear layer without bias, drawn from a normal distribution.

    A `deviation` of 1 / sqrt(columns) keeps the size of its input.
    """
    made = nn.Linear(columns, rows, bias=False)
    nn.init.normal_(made.weight, std=1 / math.sqrt(columns) if deviation is None else deviation)
    return made


def parameter(*shape: int, deviation: float = 0.0) -> nn.Parameter:
    """Makes a parameter that is drawn from a normal distribution around 0."""
    return nn.Parameter(torch.randn(*shape) * deviation)


class Norm(nn.Module):
    """RMS norm with weights that start at 1."""

    def __init__(self, size: int, epsilon: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))
        self.epsilon = epsilon

    def forward(self, x: Tensor) -> Tensor:
        return ops.norm(x, self.weight, self.epsilon)


class Angles:
    """Cosines and sines of positions, [..., size / 2] each."""

    def __init__(self, positions: Tensor, size: int, base: float) -> None:
        turns = base ** (-torch.arange(0, size, 2, dtype=torch.float32) / size)
        angle = positions.float()[..., None] * turns
        self.cos, self.sin = angle.cos(), angle.sin()

    def heads(self) -> Angles:
        """Returns the angles for tensors that have a dimension of heads before the last."""
        made = Angles.__new__(Angles)
        made.cos, made.sin = self.cos.unsqueeze(-2), self.sin.unsqueeze(-2)
        return made


def rotate(x: Tensor, angles: Angles, back: bool = False) -> Tensor:
    """Rotates the last components of x, in pairs of neighbours."""
    cos, sin = angles.cos, -angles.sin if back else angles.sin
    plain, turned = x.split([x.shape[-1] - 2 * cos.shape[-1], 2 * cos.shape[-1]], -1)
    even, odd = turned.unflatten(-1, (-1, 2)).unbind(-1)
    pairs = torch.stack([even * cos - odd * sin, even * sin + odd * cos], -1)
    return torch.cat([plain, pairs.flatten(-2)], -1)


class HyperConnection(nn.Module):
    """Reads a block's input from the residual streams, and writes its output back (docs/model.md, section 2.2)."""

    def __init__(self, shape: Shape, number: int) -> None:
        super().__init__()
        self.shape, n = shape, shape.streams
        self.fn = parameter((2 + n) * n, n * shape.hidden, deviation=0.01)
        self.scale = nn.Parameter(torch.full((3,), 0.5))
        base = torch.zeros((2 + n) * n)
        base[:n] = -1.0
        base[number % n] = 1.5  # streams start equal, and only this makes them differ
        base[2 * n :] = (4 * torch.eye(n)).flatten()
        self.base = nn.Parameter(base)

    def read(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Streams [n, 4, d] -> the block's input [n, d], and what `ops.post` needs."""
        n, epsilon = self.shape.streams, self.shape.epsilon
        logits = F.linear(ops.norm(x.flatten(1), None, epsilon), self.fn)
        pre, post, comb = logits.split([n, n, n * n], -1)
        pre = torch.sigmoid(pre * self.scale[0] + self.base[:n]) + epsilon
        post = 2 * torch.sigmoid(post * self.scale[1] + self.base[n : 2 * n])
        comb = ops.sinkhorn(comb * self.scale[2] + self.base[2 * n :], self.shape.sinkhorn_iterations, epsilon)
        return ops.mix(x, pre), post, comb


class StreamHead(nn.Module):
    """Collapses the streams after the last layer."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.epsilon = shape.epsilon
        self.fn = parameter(shape.streams, shape.streams * shape.hidden, deviation=0.01)
        self.scale = nn.Parameter(torch.full((1,), 0.5))
        self.base = parameter(shape.streams)

    def forward(self, x: Tensor) -> Tensor:
        """[n, 4, d] -> [n, d]."""
        logits = F.linear(ops.norm(x.flatten(1), None, self.epsilon), self.fn)
        return ops.mix(x, torch.sigmoid(logits * self.scale + self.base) + self.epsilon)


class Experts(nn.Module):
    """Routed experts, chosen by score and bias or by the token's own table, and a shared expert."""

    def __init__(self, shape: Shape, hashed: bool) -> None:
        super().__init__()
        self.shape, count, width, d = shape, shape.experts, shape.expert_width, shape.hidden
        self.gate = matrix(count, d)
        self.w13 = parameter(count, 2 * width, d, deviation=1 / math.sqrt(d))
        self.w2 = parameter(count, d, width, deviation=0.5 / math.sqrt(width))
        self.shared13 = matrix(2 * width, d)
        self.shared2 = matrix(d, width, 0.5 / math.sqrt(width))
        self.hashed = hashed
        self.register_buffer("table" if hashed else "bias", self.random_table() if hashed else torch.zeros(count))

    def random_table(self) -> Tensor:
        """Draws different experts for each token, [vocab, used]."""
        return torch.rand(self.shape.vocab, self.shape.experts).argsort(1)[:, : self.shape.experts_used].contiguous()

    def forward(self, x: Tensor, tokens: Tensor | None) -> tuple[Tensor, Tensor]:
        """x [n, d], tokens [n] -> [n, d], and the experts used [n, used]."""
        scores = F.softplus(self.gate(x)).sqrt()
        chosen = self.table[tokens] if self.hashed else self.likeliest(scores)
        weights = scores.gather(1, chosen)
        weights = weights / (weights.sum(-1, keepdim=True) + 1e-20) * self.shape.routed_scale
        routed = ops.experts(x, self.w13, self.w2, chosen, weights, self.shape.clamp)
        return routed + self.shared2(ops.activate(self.shared13(x), self.shape.clamp)), chosen

    def likeliest(self, scores: Tensor) -> Tensor:
        """Chooses experts by score and bias, [n, used]."""
        return (scores + self.bias).topk(self.shape.experts_used, -1).indices

    def balance(self, load: Tensor, step: float) -> None:
        """Moves the bias towards experts with less than their share of `load` [experts]."""
        self.bias += step * (load.mean() - load).sign()
