"""Measures how far the values of one file are from those of another, by role."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from gguf import GGMLQuantizationType as Type
from numpy.typing import NDArray

from . import contracts
from .plan import Slab, Tensor
from .roles import Role, role_of
from .source.gguf_file import GgufSource, GgufTensor
from .source.rows import Rows

BIAS = "conf_proj.bias"
"""The bias of the confidence head. A drafter without it has a bias of 0, which one contract stores."""


@dataclass
class ErrorSums:
    """Sums over the elements of tensors.

    Attributes:
        tensors: the number of tensors.
        elements: the number of elements.
        difference: the sum of squared differences.
        values: the sum of squared values of the first file.
        greatest: the greatest absolute difference.
    """

    tensors: int = 0
    elements: int = 0
    difference: float = 0.0
    values: float = 0.0
    greatest: float = 0.0

    @property
    def relative(self) -> float:
        """The root of `difference / values`. If all values are 0, it is the root of `difference`."""
        return float(np.sqrt(self.difference / (self.values or 1.0)))

    def add(self, other: ErrorSums) -> None:
        """Adds the sums of another tensor."""
        self.tensors += other.tensors
        self.elements += other.elements
        self.difference += other.difference
        self.values += other.values
        self.greatest = max(self.greatest, other.greatest)


@dataclass(frozen=True)
class FileComparison:
    """The errors by role, and messages about tensors that are in one file only or differ in shape."""

    roles: dict[Role, ErrorSums]
    unpaired: list[str]


def compare(first: Path, second: Path, threads: int, progress: Callable[[int, int], None]) -> FileComparison:
    """Compares two files. Drafters may have different contracts. Raises FormatError."""
    left, right = tensors_by_llama_name(GgufSource(first)), tensors_by_llama_name(GgufSource(second))
    unpaired = [f"'{name}' is only in {first}" for name in left.keys() - right.keys()]
    unpaired += [f"'{name}' is only in {second}" for name in right.keys() - left.keys()]
    pairs = []
    for name in left.keys() & right.keys():
        if left[name].shape == right[name].shape:
            pairs.append((name, left[name], right[name]))
        else:
            unpaired.append(f"'{name}' has shape {list(left[name].shape)} and {list(right[name].shape)}")
    roles: dict[Role, ErrorSums] = {}
    with ThreadPoolExecutor(threads) as pool:
        errors = pool.map(lambda pair: measure(pair[1], pair[2]), pairs)
        for done, ((name, _, _), error) in enumerate(zip(pairs, errors, strict=True)):
            role = role_of(name)
            if role is not None:
                roles.setdefault(role, ErrorSums()).add(error)
            progress(done + 1, len(pairs))
    return FileComparison(roles, sorted(unpaired))


def tensors_by_llama_name(source: GgufSource) -> dict[str, GgufTensor]:
    """Returns the tensors of a file under llama.cpp's names.

    A confidence bias of 0 is left out, because only one contract stores it.
    """
    contract = contracts.recognise_contract(set(source.tensors))
    if contract is None:
        return source.tensors
    found = {contracts.canonical(contract, name): tensor for name, tensor in source.tensors.items()}
    bias = found.get(BIAS)
    if bias is not None and not bias.parts()[0].floats(0, 1).any():
        del found[BIAS]
    return found


def measure(left: GgufTensor, right: GgufTensor) -> ErrorSums:
    """Measures the error of one tensor, a slab at a time."""
    total = ErrorSums(1)
    plan = Tensor(left.name, left.shape, left.kind, left.parts())
    others = right.parts()
    for slab in plan.slabs():
        x, y = (values(parts[slab.part], slab) for parts in (plan.parts, others))
        difference = y - x
        total.elements += x.size
        total.difference += float(np.vdot(difference, difference))
        total.values += float(np.vdot(x, x))
        total.greatest = max(total.greatest, float(np.abs(difference).max()))
    return total


def values(part: Rows, slab: Slab) -> NDArray[np.float64]:
    """Returns the values of a slab, or its ids."""
    if part.kind == Type.I32:
        return part.blocks(slab.first, slab.count).view(np.int32).astype(np.float64)
    return part.floats(slab.first, slab.count).astype(np.float64).ravel()
