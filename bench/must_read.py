"""Counts the bytes that a forward must read: dense weights, the experts that its rows use, and earlier keys."""

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from ds4py import _native

COMPONENTS = {
    "experts": r"ffn_(gate|up|down)_exps",
    "shared expert": r"ffn_(gate|up|down)_shexp",
    "compressor, indexer": r"attn_compressor|indexer",
    "attention products": r"attn_(q_a|q_b|kv|output_a|output_b)\.",
    "hyper-connections": r"hc_",
    "head": r"output(_norm)?\.",
    "MoE, the rest": r"ffn_gate_inp|ffn_gate_tid2eid|exp_probs_b|ffn_norm",
    "attention": r"attn_(sinks|norm|q_a_norm|kv_a_norm)",
    "embedding": r"token_embd",
}
"""The parts of tensor names that make a component. The first that fits decides."""

KEY_BYTES = 2
"""Bytes of a component of a key, which is kept as F16."""


class Forward(NamedTuple):
    """Rows that follow `position` others.

    Attributes:
        experts: distinct experts that the rows read, by the names of expert tensors; chance decides for other names.
    """

    rows: int
    position: int
    experts: Mapping[str, int] = {}


def component_of(name: str) -> str | None:
    """Returns the component that a tensor belongs to, or None for a name that is not a target's."""
    return next((part for part, pattern in COMPONENTS.items() if re.search(pattern, name)), None)


def chance(experts: int, used: int, rows: int) -> float:
    """Returns the distinct experts that `rows` rows choose on average, if each chooses `used` at random."""
    return experts * (1 - (1 - used / experts) ** rows)


class Target:
    """The tensors of a target file, and the bytes that forwards must read of them.

    Attributes:
        sizes: bytes, by name.
        matrices: shape and type of tensors with more than one dimension, by name.
    """

    def __init__(self, file: _native.GgufFile) -> None:
        self.hyperparameters = _native.read_hyperparameters(file)
        self.sizes = {tensor.name: tensor.nbytes for tensor in file.tensors()}
        self.matrices = {
            tensor.name: f"{'x'.join(map(str, tensor.shape))} {tensor.type}"
            for tensor in file.tensors()
            if len(tensor.shape) > 1
        }

    def by_tensor(self, forward: Forward) -> Iterator[tuple[str, float]]:
        """Yields the bytes of each tensor that are read, without rows that are looked up (embedding, token map)."""
        hp = self.hyperparameters
        expected = chance(hp.experts, hp.experts_used, forward.rows)
        for name, size in self.sizes.items():
            if name.endswith("_exps.weight"):
                yield name, size / hp.experts * forward.experts.get(name, expected)
            elif self.is_multiplied(name) and (self.indexed(forward) or not re.search(r"indexer\.(proj|attn)", name)):
                yield name, size

    def is_multiplied(self, name: str) -> bool:
        """Tells whether a whole tensor is read. Token maps are not, nor an embedding that is not the head, too."""
        looked_up = "output.weight" in self.sizes and name == "token_embd.weight"
        return not looked_up and "ffn_gate_tid2eid" not in name

    def indexed(self, forward: Forward) -> bool:
        """Tells whether the indexer chooses, because there are more compressed rows of ratio 4 than a row reads."""
        return (forward.position + forward.rows) // 4 > self.hyperparameters.index_top_k

    def keys(self, forward: Forward) -> float:
        """Returns the bytes of the keys before the rows: the window, compressed rows, and index keys.

        If rows choose compressed rows, all are assumed to choose the same, which is the least that they can read.
        """
        hp = self.hyperparameters
        total = 0
        for ratio in hp.ratios:
            total += min(forward.position, hp.window) * hp.head_size
            length = forward.position // ratio if ratio else 0
            if ratio == 4 and self.indexed(forward):
                total += length * hp.index_size
                length = min(length, hp.index_top_k)
            total += length * hp.head_size
        return total * KEY_BYTES

    def by_component(self, forward: Forward) -> dict[str, float]:
        """Returns the bytes of each component. Keys belong to attention."""
        found = dict.fromkeys(COMPONENTS, 0.0)
        for name, size in self.by_tensor(forward):
            if part := component_of(name):
                found[part] += size
        head = found.pop("embedding")  # the embedding is read as a whole if it is also the head
        return found | {"head": found["head"] + head, "attention": found["attention"] + self.keys(forward)}

    def total(self, forward: Forward) -> float:
        """Returns the bytes of all components."""
        return sum(self.by_component(forward).values())


def measured_experts(nodes: list[_native.NodeTime]) -> dict[str, int]:
    """Returns the distinct experts that a forward read, by the names of expert tensors that its nodes tell."""
    return {
        leaf: node.experts for node in nodes if node.experts for leaf in node.leaves if leaf.endswith("_exps.weight")
    }
