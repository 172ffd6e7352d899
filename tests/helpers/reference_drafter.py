"""The DSpark drafter again, in slow float64 NumPy written from its specification (docs/dspark.md section 2).

The numbers that no tensor tells are those of the golden pair.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import gguf
import numpy as np
from gguf_tools import TARGET

STREAMS, HEADS, GROUPS, ROPE, WINDOW = 4, 4, 2, 64, 32
EXPERTS_USED, ROUTE_SCALE, CLAMP = 3, 1.5, 1.5
ROPE_BASE, SINKHORN, EPSILON = 1e4, 20, 1e-6

Sublayer = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Block:
    """The output of a drafter's stages for one block."""

    hidden: np.ndarray  # [block, hidden]: collapsed streams before the last norm
    base: np.ndarray  # [block, vocab]: logits without the Markov bias
    router_gap: float  # least score between a chosen and a refused expert: what no error may come near


@dataclass(frozen=True)
class Chain:
    """The output of the Markov and confidence heads for one block."""

    tokens: np.ndarray  # [block]
    logits: np.ndarray  # [block, vocab], with the bias of the token before
    confidence: np.ndarray | None  # [block]


def sigmoid(x: np.ndarray) -> np.ndarray:
    return np.asarray(1 / (1 + np.exp(-x)))


def norm(x: np.ndarray, weight: np.ndarray | float = 1.0) -> np.ndarray:
    """RMS norm over the last axis."""
    return np.asarray(x / np.sqrt((x * x).mean(-1, keepdims=True) + EPSILON) * weight)


def rotate(x: np.ndarray, positions: np.ndarray, inverse: bool = False) -> np.ndarray:
    """RoPE of the last components of x [n, heads, size], adjacent pairs."""
    speeds = ROPE_BASE ** (-np.arange(0, ROPE, 2) / ROPE)
    turn = np.exp((-1j if inverse else 1j) * positions[:, None] * speeds)[:, None]
    turned = (x[..., -ROPE::2] + 1j * x[..., -ROPE + 1 :: 2]) * turn
    pairs = np.stack([turned.real, turned.imag], -1).reshape(*x.shape[:-1], ROPE)
    return np.concatenate([x[..., :-ROPE], pairs], -1)


def swiglu(gate: np.ndarray, up: np.ndarray) -> np.ndarray:
    gate, up = np.minimum(gate, CLAMP), np.clip(up, -CLAMP, CLAMP)
    return np.asarray(gate * sigmoid(gate) * up)


def combination(mix: np.ndarray) -> np.ndarray:
    """Sinkhorn's doubly normalised matrix [n, source, destination]."""
    weights = np.exp(mix - mix.max(2, keepdims=True))
    weights = weights / weights.sum(2, keepdims=True) + EPSILON
    weights /= weights.sum(1, keepdims=True) + EPSILON
    for _ in range(SINKHORN - 1):
        weights /= weights.sum(2, keepdims=True) + EPSILON
        weights /= weights.sum(1, keepdims=True) + EPSILON
    return weights


@cache
def target_ends() -> tuple[np.ndarray, np.ndarray]:
    """Token embedding and output matrix of the golden target, [vocab, hidden] each."""
    target = {t.name: t.data for t in gguf.GGUFReader(TARGET).tensors}
    return np.float64(target["token_embd.weight"]), np.float64(target["output.weight"])


class ReferenceDrafter:
    """A drafter of some tensors, by the names llama.cpp has for them, on the golden target."""

    def __init__(
        self, tensors: Mapping[str, np.ndarray], *, block: int = 5, noise: int = 511, from_anchor: bool = True
    ) -> None:
        self._weight = {name: np.float64(data) for name, data in tensors.items()}
        self.embedding, self.output = target_ends()
        self.block, self.noise, self.unused = block, noise, 0 if from_anchor else 1
        self.stages = sum(name.endswith("attn_sinks.weight") for name in tensors)

    @classmethod
    def read(cls, path: Path, **options: Any) -> ReferenceDrafter:
        """The drafter in a file; a quantised tensor is what its blocks stand for."""
        tensors = gguf.GGUFReader(path).tensors
        return cls({t.name: gguf.dequantize(t.data, t.tensor_type) for t in tensors}, **options)

    def _in_stage(self, stage: int, name: str) -> np.ndarray:
        return self._weight[f"blk.{stage}.{name}"]

    def _keys(self, stage: int, x: np.ndarray, positions: np.ndarray) -> np.ndarray:
        """Keys, which are values too, of x [n, hidden]: [n, head size] (2.3)."""
        kv = norm(x @ self._in_stage(stage, "attn_kv.weight").T, self._in_stage(stage, "attn_kv_a_norm.weight"))
        return rotate(kv[:, None], positions)[:, 0]

    def _around(self, streams: np.ndarray, name: str, norm_name: str, sublayer: Sublayer) -> np.ndarray:
        """The streams [n, STREAMS, hidden] after a sub-layer with its hyper-connection (2.5, hc_pre and hc_post)."""
        fn, base, scale = (self._weight[f"{name}_{part}.weight"] for part in ("fn", "base", "scale"))
        mix = norm(streams.reshape(len(streams), -1)) @ fn.T * np.repeat(scale, [4, 4, 16]) + base
        before, after = sigmoid(mix[:, :4]) + EPSILON, 2 * sigmoid(mix[:, 4:8])
        y = sublayer(norm(np.einsum("nm,nmd->nd", before, streams), self._weight[norm_name]))
        between = combination(mix[:, 8:].reshape(-1, 4, 4))
        return np.asarray(after[:, :, None] * y[:, None] + np.einsum("nsd,nsh->ndh", between, streams))

    def _attention(self, stage: int, x: np.ndarray, positions: np.ndarray, context: np.ndarray) -> np.ndarray:
        """Every row sees the context keys and the whole block."""
        weight = partial(self._in_stage, stage)
        rank = norm(x @ weight("attn_q_a.weight").T, weight("attn_q_a_norm.weight"))
        q = norm((rank @ weight("attn_q_b.weight").T).reshape(len(x), HEADS, -1))
        q = rotate(q, positions)
        keys = np.concatenate([context, self._keys(stage, x, positions)])
        scores = np.exp(np.einsum("nhc,kc->nhk", q, keys) / np.sqrt(keys.shape[1]))
        scores /= scores.sum(-1, keepdims=True) + np.exp(weight("attn_sinks.weight"))[:, None]
        o = rotate(np.einsum("nhk,kc->nhc", scores, keys), positions, inverse=True)
        down = weight("attn_output_a.weight").reshape(GROUPS, -1, o[0].size // GROUPS)
        low = np.einsum("ngi,goi->ngo", o.reshape(len(x), GROUPS, -1), down)
        return np.asarray(low.reshape(len(x), -1) @ weight("attn_output_b.weight").T)

    def _experts(self, stage: int, x: np.ndarray, gaps: list[float]) -> np.ndarray:
        """The shared expert and, of the others, those of the greatest biased score."""
        weight = partial(self._in_stage, stage)
        gate, up, down = (weight(f"ffn_{role}_exps.weight") for role in ("gate", "up", "down"))
        scores = np.sqrt(np.logaddexp(0, x @ weight("ffn_gate_inp.weight").T))
        biased = scores + weight("exp_probs_b.bias")
        order = np.argsort(-biased, axis=1)
        ranked = np.take_along_axis(biased, order, 1)
        gaps.append((ranked[:, EXPERTS_USED - 1] - ranked[:, EXPERTS_USED]).min())
        shared = [weight(f"ffn_{role}_shexp.weight").T for role in ("gate", "up", "down")]
        y = swiglu(x @ shared[0], x @ shared[1]) @ shared[2]
        for row, chosen in enumerate(order[:, :EXPERTS_USED]):
            for e in chosen:
                out = down[e] @ swiglu(gate[e] @ x[row], up[e] @ x[row])
                y[row] += ROUTE_SCALE * scores[row, e] / scores[row, chosen].sum() * out
        return np.asarray(y)

    def stages_of(self, features: np.ndarray, anchor: int, position: int) -> Block:
        """A block whose anchor is at `position`; features [n, taps * hidden] are those of the n positions before it."""
        features = features[-WINDOW:]
        past = np.arange(position - len(features), position)
        rows = position + np.arange(self.block + self.unused)
        fused = norm(features @ self._weight["fc.weight"].T, self._weight["enc.output_norm.weight"])
        tokens = [anchor] + [self.noise] * (len(rows) - 1)
        streams = np.repeat(self.embedding[tokens][:, None], STREAMS, 1)
        gaps: list[float] = []
        for s in range(self.stages):
            context = self._keys(s, fused, past)
            attention = partial(self._attention, s, positions=rows, context=context)
            streams = self._around(streams, f"blk.{s}.hc_attn", f"blk.{s}.attn_norm.weight", attention)
            experts = partial(self._experts, s, gaps=gaps)
            streams = self._around(streams, f"blk.{s}.hc_ffn", f"blk.{s}.ffn_norm.weight", experts)
        hidden = self._collapse(streams)[self.unused :]
        return Block(hidden, norm(hidden, self._weight["output_norm.weight"]) @ self.output.T, min(gaps))

    def _collapse(self, streams: np.ndarray) -> np.ndarray:
        fn, base, scale = (self._weight[f"output_hc_{part}.weight"] for part in ("fn", "base", "scale"))
        before = sigmoid(norm(streams.reshape(len(streams), -1)) @ fn.T * scale + base) + EPSILON
        return np.einsum("nm,nmd->nd", before, streams)

    def chain(self, block: Block, anchor: int, tokens: Sequence[int] | None = None) -> Chain:
        """The heads of a block, position by position: after `tokens`, or else after the arg max (2.7, 2.8)."""
        previous, chosen, logits, features = anchor, [], [], []
        for j, (hidden, base) in enumerate(zip(block.hidden, block.base, strict=True)):
            markov = self._weight["markov_w1.weight"][previous] if "markov_w1.weight" in self._weight else np.zeros(0)
            logits.append(base + (self._weight["markov_w2.weight"] @ markov if len(markov) else 0))
            features.append(np.concatenate([hidden, markov]))
            previous = int(np.argmax(logits[-1])) if tokens is None else int(tokens[j])
            chosen.append(previous)
        return Chain(np.array(chosen), np.array(logits), self._confidence(np.array(features)))

    def _confidence(self, features: np.ndarray) -> np.ndarray | None:
        """A head of the hidden's width reads no Markov row."""
        if "conf_proj.weight" not in self._weight:
            return None
        head = self._weight["conf_proj.weight"].ravel()
        bias = self._weight.get("conf_proj.bias", 0.0)
        return sigmoid(features[:, : len(head)] @ head + bias)
