"""Defines operations with gradients of their own: norms, hyper-connections, experts.

The hyper-connections are in `ops.cpp`, which is compiled at first use.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function
from torch.nn import functional as F
from torch.utils.cpp_extension import load

_native = load(
    "ds4py_tiny_ops",
    [str(Path(__file__).with_name("ops.cpp"))],
    extra_cflags=["-O3", "-march=native", "-ffast-math", "-fno-finite-math-only"],
)


class _Norm(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, epsilon: float) -> Tensor:
        y, inverse = _native.norm(x.contiguous(), epsilon)
        ctx.save_for_backward(y, inverse)
        return y

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        return _native.norm_backward(gradient.contiguous(), *ctx.saved_tensors), None


class _Sinkhorn(Function):
    @staticmethod
    def forward(ctx: Any, logits: Tensor, iterations: int, epsilon: float) -> Tensor:
        ctx.save_for_backward(logits)
        ctx.settings = iterations, epsilon
        return _native.sinkhorn(logits, iterations, epsilon)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        return _native.sinkhorn_backward(gradient.contiguous(), *ctx.saved_tensors, *ctx.settings), None, None


class _Mix(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, pre: Tensor) -> Tensor:
        ctx.save_for_backward(x, pre)
        return _native.mix(x, pre)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, ...]:
        return tuple(_native.mix_backward(gradient.contiguous(), *ctx.saved_tensors))


class _Post(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, y: Tensor, post: Tensor, comb: Tensor) -> Tensor:
        ctx.save_for_backward(x, y, post, comb)
        return _native.post(x, y, post, comb)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, ...]:
        return tuple(_native.post_backward(gradient.contiguous(), *ctx.saved_tensors))


def norm(x: Tensor, weight: Tensor | None, epsilon: float) -> Tensor:
    """Divides rows (the last dimension) by their root mean square, and multiplies them by `weight`."""
    y = _Norm.apply(x, epsilon)
    return y if weight is None else y * weight


def sinkhorn(logits: Tensor, iterations: int, epsilon: float) -> Tensor:
    """Returns doubly stochastic matrices [n, 16] of four streams, row-major [source][destination]."""
    return _Sinkhorn.apply(logits.contiguous(), iterations, epsilon)


def mix(x: Tensor, pre: Tensor) -> Tensor:
    """Collapses streams x [n, 4, d] with weights `pre` [n, 4] to [n, d]."""
    return _Mix.apply(x.contiguous(), pre.contiguous())


def post(x: Tensor, y: Tensor, weights: Tensor, comb: Tensor) -> Tensor:
    """Returns the streams after a block: weights[to] * y + sum over `from` of comb[from][to] * x[from], [n, 4, d]."""
    return _Post.apply(x, y.contiguous(), weights.contiguous(), comb)


def activate(hidden: Tensor, clamp: float) -> Tensor:
    """Computes SwiGLU of [gate | up] with its clamps: gate from above, up on both sides."""
    gate, up = hidden.chunk(2, -1)
    return F.silu(gate.clamp(max=clamp)) * up.clamp(-clamp, clamp)


class _Experts(Function):
    """Multiplies rows that are sorted by expert, one matmul for each expert, forwards and backwards."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, w13: Tensor, w2: Tensor, ids: Tensor, weights: Tensor, clamp: float) -> Tensor:
        used = ids.shape[1]
        order = torch.argsort(ids.reshape(-1), stable=True)
        counts = torch.bincount(ids.reshape(-1), minlength=len(w13)).tolist()
        rows = x[order // used]
        hidden = rows.new_empty(len(rows), w13.shape[1])
        for expert, part in parts(counts):
            torch.mm(rows[part], w13[expert].t(), out=hidden[part])
        active = activate(hidden, clamp)
        y = torch.empty_like(rows)
        for expert, part in parts(counts):
            torch.mm(active[part], w2[expert].t(), out=y[part])
        ctx.save_for_backward(rows, w13, w2, order, weights, hidden, active)
        ctx.counts, ctx.clamp = counts, clamp
        placed = torch.empty_like(y)
        placed[order] = y
        return (placed.view(-1, used, x.shape[1]) * weights[..., None]).sum(1)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        rows, w13, w2, order, weights, hidden, active = ctx.saved_tensors
        used, clamp = weights.shape[1], ctx.clamp
        share = weights.reshape(-1)[order][:, None]
        incoming = gradient[order // used]
        d_active, d_w2 = torch.empty_like(active), torch.zeros_like(w2)
        weighted = active * share
        for expert, part in parts(ctx.counts):
            torch.mm(incoming[part], w2[expert], out=d_active[part])
            torch.mm(incoming[part].t(), weighted[part], out=d_w2[expert])
        d_share = (d_active * active).sum(-1)
        d_hidden = activate_backward(hidden, d_active * share, clamp)
        d_rows, d_w13 = torch.empty_like(rows), torch.zeros_like(w13)
        for expert, part in parts(ctx.counts):
            torch.mm(d_hidden[part], w13[expert], out=d_rows[part])
            torch.mm(d_hidden[part].t(), rows[part], out=d_w13[expert])
        d_x, d_weights = torch.empty_like(d_rows), torch.empty_like(d_share)
        d_x[order], d_weights[order] = d_rows, d_share
        return d_x.view(-1, used, rows.shape[1]).sum(1), d_w13, d_w2, None, d_weights.view_as(weights), None


def parts(counts: list[int]) -> list[tuple[int, slice]]:
    """Returns the experts that have rows, with their rows."""
    found, first = [], 0
    for expert, count in enumerate(counts):
        if count:
            found.append((expert, slice(first, first + count)))
        first += count
    return found


def activate_backward(hidden: Tensor, gradient: Tensor, clamp: float) -> Tensor:
    """Computes the gradient of `activate` with respect to `hidden`."""
    gate, up = hidden.chunk(2, -1)
    limited, bounded = gate.clamp(max=clamp), up.clamp(-clamp, clamp)
    sigmoid = torch.sigmoid(limited)
    silu = limited * sigmoid
    d_gate = gradient * bounded * (sigmoid + silu * (1 - sigmoid)) * (gate <= clamp)
    return torch.cat([d_gate, gradient * silu * (up.abs() <= clamp)], -1)


def experts(x: Tensor, w13: Tensor, w2: Tensor, ids: Tensor, weights: Tensor, clamp: float) -> Tensor:
    """Computes the weighted sum of the chosen experts, [n, d].

    x is [n, d], `w13` [experts, 2 * width, d] with gate rows before up rows, `w2` [experts, d, width], `ids` and
    `weights` [n, used].
    """
    return _Experts.apply(x, w13, w2, ids, weights, clamp)
