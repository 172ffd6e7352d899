"""Finds the component of a verify that each node of its graph belongs to."""

import re
from collections.abc import Mapping, Sequence

from must_read import COMPONENTS, component_of

from ds4py import _native

PARTS = [part for part in COMPONENTS if part != "embedding"] + ["other"]
LAYER = re.compile(r"^blk\.\d+\.")
VIEWS = {"NONE", "VIEW", "RESHAPE", "PERMUTE", "TRANSPOSE"}
REST = {
    "experts": "MoE, the rest",
    "shared expert": "MoE, the rest",
    "attention products": "attention",
    None: "attention",
}
"""The components of nodes without weights, by what they read. Nodes that read only state and inputs are attention's."""


def parts_of(nodes: Sequence[_native.NodeTime]) -> list[str]:
    """Returns the component of every node: that of the weights it reads, or of the nodes it reads.

    Between two sub-layers, nodes that read the mix of streams belong to the hyper-connections. That ends with a node
    that reads weights of the next sub-layer, or that only prepares rows for such nodes.
    """
    readers = readers_of(nodes)
    found: list[str] = []
    for node, of_readers in zip(nodes, readers, strict=True):
        read = [found[source] for source in node.sources]
        if own := part_by_weights(node):
            found.append(own)
        elif "hyper-connections" not in read:
            found.append(rest_of(read[0] if read else None))
        elif None in of_readers or "hyper-connections" in of_readers:
            found.append("hyper-connections")
        else:
            found.append(rest_of(of_readers[0]))
    return found


def part_by_weights(node: _native.NodeTime) -> str | None:
    """Returns the component whose weights a node reads, or None. Of several, the first in the list decides."""
    read = {component_of(leaf) for leaf in node.leaves}
    part = next((part for part in COMPONENTS if part in read), None)
    if part == "embedding":  # which may be the head's matrix, too
        return "other" if node.op in {"GET_ROWS", *VIEWS} else "head"
    return part


def rest_of(part: str | None) -> str:
    """Returns the component of a node without weights that follows this component."""
    return REST.get(part, part) or "other"


def readers_of(nodes: Sequence[_native.NodeTime]) -> list[list[str | None]]:
    """Returns for every node the components of its readers by their weights, with None for readers without any.

    A node without readers has [None]. The readers of a view read what is viewed.
    """
    found: list[list[str | None]] = [[] for _ in nodes]
    for node, own in zip(reversed(nodes), reversed(found), strict=True):
        for source in node.sources:
            found[source] += own if node.op in VIEWS else [part_by_weights(node)]
    return [each or [None] for each in found]


def folded(nodes: Sequence[_native.NodeTime]) -> dict[str, str]:
    """Returns the components without nodes of their own, with the components whose nodes read their weights."""
    owners: dict[str, set[str]] = {}
    for node, part in zip(nodes, parts_of(nodes), strict=True):
        for name in {component_of(leaf) for leaf in node.leaves} - {None, "embedding"}:
            owners.setdefault(name or "", set()).add(part)
    return {name: min(parts) for name, parts in owners.items() if name not in parts}


def times(nodes: Sequence[_native.NodeTime]) -> dict[str, float]:
    """Returns the seconds of each component that has nodes of its own."""
    without = folded(nodes)
    found = {part: 0.0 for part in PARTS if part not in without}
    for node, part in zip(nodes, parts_of(nodes), strict=True):
        found[part] += node.seconds
    return found


def by_matrices(nodes: Sequence[_native.NodeTime], matrices: Mapping[str, str]) -> dict[str, float]:
    """Returns the seconds of nodes that read matrices, by the name, shape and type of these in all layers."""
    found: dict[str, float] = {}
    for node in nodes:
        read = [leaf for leaf in node.leaves if leaf in matrices]
        if read and node.seconds:
            label = " + ".join(f"{LAYER.sub('', leaf)} {matrices[leaf]}" for leaf in read)
            found[label] = found.get(label, 0.0) + node.seconds
    return found
