"""Which component of a verify each node of its graph belongs to."""

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
"""Where nodes without weights belong, by what they read. State and inputs alone are read for attention."""


def parts_of(nodes: Sequence[_native.NodeTime]) -> list[str]:
    """The component of every node: that of the weights it reads, or of the nodes it reads.

    Between two sub-layers, all that reads the streams' mix is the hyper-connections', until a node reads the weights of
    the next one, or only prepares rows for nodes that do.
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
    """The component whose weights a node reads: of several, the first in the list; None where it reads none."""
    read = {component_of(leaf) for leaf in node.leaves}
    part = next((part for part in COMPONENTS if part in read), None)
    if part == "embedding":  # which may be the head's matrix, too
        return "other" if node.op in {"GET_ROWS", *VIEWS} else "head"
    return part


def rest_of(part: str | None) -> str:
    """Where a node without weights belongs that goes with this component."""
    return REST.get(part, part) or "other"


def readers_of(nodes: Sequence[_native.NodeTime]) -> list[list[str | None]]:
    """For every node, the components of what reads it by their weights: None for a reader without any.

    A node that nobody reads has [None]. Who reads a view reads what is viewed.
    """
    found: list[list[str | None]] = [[] for _ in nodes]
    for node, own in zip(reversed(nodes), reversed(found), strict=True):
        for source in node.sources:
            found[source] += own if node.op in VIEWS else [part_by_weights(node)]
    return [each or [None] for each in found]


def folded(nodes: Sequence[_native.NodeTime]) -> dict[str, str]:
    """Components that have no nodes of their own, and whose nodes read their weights instead."""
    owners: dict[str, set[str]] = {}
    for node, part in zip(nodes, parts_of(nodes), strict=True):
        for name in {component_of(leaf) for leaf in node.leaves} - {None, "embedding"}:
            owners.setdefault(name or "", set()).add(part)
    return {name: min(parts) for name, parts in owners.items() if name not in parts}


def times(nodes: Sequence[_native.NodeTime]) -> dict[str, float]:
    """Seconds of each component that has nodes of its own."""
    without = folded(nodes)
    found = {part: 0.0 for part in PARTS if part not in without}
    for node, part in zip(nodes, parts_of(nodes), strict=True):
        found[part] += node.seconds
    return found


def by_matrices(nodes: Sequence[_native.NodeTime], matrices: Mapping[str, str]) -> dict[str, float]:
    """Seconds of the nodes that read matrices, by what these are in all layers: name, shape and type."""
    found: dict[str, float] = {}
    for node in nodes:
        read = [leaf for leaf in node.leaves if leaf in matrices]
        if read and node.seconds:
            label = " + ".join(f"{LAYER.sub('', leaf)} {matrices[leaf]}" for leaf in read)
            found[label] = found.get(label, 0.0) + node.seconds
    return found
