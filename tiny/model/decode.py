"""Decodes many texts at once, token by token, for the training of the drafter."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from . import ops
from .attention import Attention
from .compressor import Compressor
from .layers import Angles, rotate
from .target import Target


class Decoder:
    """The target's state for texts of equal length. All compressed rows are seen (see `longest`)."""

    def __init__(self, target: Target, texts: int, length: int) -> None:
        if length > longest(target):
            raise ValueError(f"{length} tokens, wanted at most {longest(target)}: the indexer is not run here")
        self.target, self.position = target, 0
        size = target.shape.head_size
        self.keys = [torch.zeros(texts, length, size) for _ in target.layers]
        self.packed = [torch.zeros(texts, length // 4 + 1, size) for _ in target.layers]
        self.inputs = [torch.zeros(texts, length, target.shape.hidden) for _ in target.layers]

    @torch.no_grad()
    def step(self, tokens: Tensor) -> Tensor:
        """The next token of each text [texts] -> logits [texts, vocab]."""
        target = self.target
        x = F.embedding(tokens, target.embed)[:, None].repeat(1, target.shape.streams, 1)
        for number, layer in enumerate(target.layers):
            block, post, comb = layer.hc_attn.read(x)
            x = ops.post(x, self.attend(number, layer.attn, layer.attn_norm(block)), post, comb)
            block, post, comb = layer.hc_ffn.read(x)
            x = ops.post(x, layer.ffn(layer.ffn_norm(block), tokens)[0], post, comb)
        self.position += 1
        return target.head(target.norm(target.hc_head(x)))

    def attend(self, number: int, attention: Attention, x: Tensor) -> Tensor:
        """One layer's attention for one position, [texts, d]."""
        here, shape = self.position, self.target.shape
        angles = attention.angles(torch.tensor(here))
        _, queries = attention.project.queries(x, angles)
        self.keys[number][:, here] = attention.project.keys(x, angles)
        seen = self.keys[number][:, max(0, here - shape.window + 1) : here + 1]
        if attention.compressor is not None:
            self.inputs[number][:, here] = x
            seen = torch.cat([seen, self.compress(number, attention.compressor)], 1)
        weights = attention.project.weights(queries @ seen.mT * shape.head_size**-0.5)
        return attention.project.output(weights @ seen, angles)

    def compress(self, number: int, compressor: Compressor) -> Tensor:
        """Returns the compressed rows so far, with a new one if a block has just become complete."""
        rows, within = divmod(self.position + 1, compressor.ratio)
        if rows and not within:
            first = max(0, rows - 2) * compressor.ratio  # with a ratio of 4, a block reads the one before it
            made = compressor.pack(self.inputs[number][:, first : self.position + 1])[:, -1]
            position = torch.tensor((rows - 1) * compressor.ratio)
            angles = Angles(position, self.target.shape.rope_size, self.target.shape.compress_rope_base)
            self.packed[number][:, rows - 1] = rotate(made, angles)
        return self.packed[number][:, :rows]


def longest(target: Target) -> int:
    """Returns the length of text up to which the indexer chooses all rows."""
    return 4 * target.shape.index_top_k


def generate(target: Target, prompts: Tensor, length: int, temperatures: Tensor, generator: torch.Generator) -> Tensor:
    """prompts [texts, n], temperatures [texts] (0 is greedy) -> texts [texts, length], without special tokens."""
    decoder = Decoder(target, len(prompts), length)
    out = torch.zeros(len(prompts), length, dtype=torch.long)
    out[:, : prompts.shape[1]] = prompts
    for place in range(length - 1):
        logits = decoder.step(out[:, place])
        if place + 1 >= prompts.shape[1]:
            logits[:, 2:8] = -torch.inf
            noise = -torch.empty_like(logits).exponential_(generator=generator).log()
            logits += noise * temperatures[:, None]  # greedy where the temperature is 0
            out[:, place + 1] = logits.argmax(-1)
    return out
