"""Writes what PyTorch computes with the weights of the exported files, so that the runtime can be tested against it.

The weights are read from the files, so rounding explains no difference.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from gguf import GGMLQuantizationType, GGUFReader, dequantize
from numpy.typing import NDArray
from torch import Tensor

from ds4py.converter.roles import Slot, role_of
from ds4py.converter.source.names import Naming, TensorSlice, drafter_slices, target_slices

from .config import DOMAINS, DraftShape, Shape
from .evaluation import heldout
from .export import drafter_tensors, target_tensors
from .model.drafter import Drafter
from .model.target import Target

LENGTH = 640
"""Tokens of the text. They complete blocks of both ratios, and more of ratio 4 than the indexer may choose."""
POSITIONS = (0, 1, 3, 4, 100, 127, 128, 129, 200, 255, 256, 300, 383, 384, 480, 511, 512, 516, 530, 560, 600, 639)
ANCHORS = (2, 5, 60, 127, 128, 140, 250, 300, 400, 500, 520, 600)


@torch.no_grad()
def write(work: Path, target_file: Path, drafter_file: Path) -> None:
    """Writes `work/tiny-pair.npz`.

    tokens [LENGTH] are held-out text; positions [p] and logits [p, vocab] F32 are the target's; anchors [a], drafts
    [a, block] and confidences [a, block] are greedy blocks, each behind the token at its anchor.
    """
    target, drafter = Target(Shape()).eval(), Drafter(Shape(), DraftShape()).eval()
    fill(target_tensors(target), target_file, partial(target_slices, Naming.DEEPSEEK))
    fill(drafter_tensors(drafter), drafter_file, partial(drafter_slices, stages=drafter.draft.stages))
    tokens = text(work)
    output = target(torch.from_numpy(tokens)[None], taps=drafter.draft.taps)
    logits = target.head(output.hidden.view(LENGTH, -1)[list(POSITIONS)])
    drafts, confidences = draft(target, drafter, output.features.view(1, LENGTH, -1), tokens)
    arrays: dict[str, Any] = {
        "tokens": tokens.astype(np.int32), "positions": POSITIONS, "logits": logits.numpy(),
        "anchors": ANCHORS, "drafts": drafts.numpy().astype(np.int32), "confidences": confidences.numpy(),
    }  # fmt: skip
    np.savez(work / "tiny-pair.npz", **arrays)


def text(work: Path) -> NDArray[np.int64]:
    """Returns the first tokens of every domain's held-out text, one after another."""
    each = LENGTH // len(DOMAINS)
    return np.concatenate([heldout.read(work, domain, Shape().vocab)[:each] for domain in DOMAINS]).astype(np.int64)


def draft(target: Target, drafter: Drafter, features: Tensor, tokens: NDArray[np.int64]) -> tuple[Tensor, Tensor]:
    """Drafts greedy blocks behind the anchors, slot by slot, and their confidences: [anchors, block] each."""
    previous = torch.zeros(1, len(ANCHORS), drafter.draft.block + 1, dtype=torch.long)
    previous[0, :, 0] = torch.from_numpy(tokens[list(ANCHORS)])
    for slot in range(drafter.draft.block):
        made = drafter(target, features, torch.tensor([ANCHORS]), previous[..., :-1])
        previous[..., slot + 1] = made.logits[..., slot, :].argmax(-1)
    return previous[0, :, 1:], made.confidence[0].sigmoid()


def fill(tensors: Iterable[tuple[str, Tensor]], file: Path, pieces: Callable[[Slot], list[TensorSlice]]) -> None:
    """Overwrites a model's tensors, under DeepSeek's names, with the values of a file."""
    values = dict(read(file, pieces))
    for name, tensor in tensors:
        tensor.copy_(torch.from_numpy(np.array(values[name])).view_as(tensor))


def read(file: Path, pieces: Callable[[Slot], list[TensorSlice]]) -> Iterator[tuple[str, NDArray[Any]]]:
    """Yields the values of a file by DeepSeek's names, with each expert apart."""
    for tensor in GGUFReader(file).tensors:
        whole = tensor.tensor_type == GGMLQuantizationType.I32
        data = tensor.data if whole else dequantize(tensor.data, tensor.tensor_type)
        found = pieces(Slot(tensor.name, role_of(tensor.name), data.shape))
        yield from zip((piece.name for piece in found), data if len(found) > 1 else [data], strict=True)
