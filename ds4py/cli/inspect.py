"""`ds4py inspect`: what a GGUF file is, what is in it, and what it takes to run."""

import argparse
import json
import math
from collections import Counter
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from ds4py.cli import exits
from ds4py.cli.model import require_file
from ds4py.cli.options import number
from ds4py.cli.roles import role
from ds4py.cli.table import quantity, size, table

if TYPE_CHECKING:
    from ds4py import _native

DESCRIPTION = """\
Tells what a GGUF file (or any shard of a split one) is: its kind, hyperparameters, tensors by type and by role, and
the memory needed to run it at a context. Reads headers only. Other GGUF files than DS4 targets are described as far
as possible, with the reason why they cannot be run as a target."""

DEFAULT_CONTEXT = 4096
LAYER_KINDS = {0: "window only", 4: "window + ratio 4, indexed (CSA)", 128: "window + ratio 128 (HCA)"}
HYPERPARAMETERS = (
    "layers",
    "hidden",
    "vocab",
    "context",
    "heads",
    "head_size",
    "rope_size",
    "query_rank",
    "output_groups",
    "output_rank",
    "window",
    "experts",
    "experts_used",
    "shared_experts",
    "hash_layers",
    "index_heads",
    "index_size",
    "index_top_k",
    "streams",
)


def add_parser(commands: "argparse._SubParsersAction[Any]") -> None:
    """Adds the command and its flags."""
    parser = commands.add_parser(
        "inspect",
        help="tell what a GGUF file is and what it needs",
        description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.set_defaults(run=run)
    parser.add_argument("file", metavar="FILE", help="a GGUF file")
    parser.add_argument(
        "-c", "--context", type=number(int, 1), default=DEFAULT_CONTEXT, metavar="N", help="for the memory needed"
    )
    parser.add_argument("--kv-dtype", choices=("f16", "f32"), default="f16", help="for the memory needed")
    parser.add_argument("--tensors", action="store_true", help="list every tensor")
    parser.add_argument("--json", action="store_true", help="print one JSON object and nothing else")


def run(args: argparse.Namespace) -> int:
    """Prints the description; returns the exit code."""
    from ds4py import _native

    require_file(args.file)
    file = _native.GgufFile.open(args.file)
    facts = describe(file, args)
    print(json.dumps(facts, ensure_ascii=False) if args.json else render(facts))
    return exits.OK


def describe(file: "_native.GgufFile", args: argparse.Namespace) -> dict[str, Any]:
    """Everything that is printed, as plain values; sizes in bytes."""
    metadata = file.metadata()
    tensors = [
        {"name": name, "type": str(kind), "shape": list(shape), "bytes": nbytes, "role": role(name), "shard": shard}
        for name, kind, shape, nbytes, shard in file.tensors()
    ]
    facts = {
        "files": list(file.paths),
        "name": metadata.get("general.name"),
        "architecture": metadata.get("general.architecture"),
        "gguf_version": file.version,
        "bytes": file.file_bytes,
        "parameters": sum(math.prod(tensor["shape"]) for tensor in tensors),
        "types": totals(tensors, lambda tensor: tensor["type"]),
        "roles": totals(tensors, lambda tensor: tensor["role"]),
        **describe_target(file, args),
    }
    if args.tensors:
        facts["tensors"] = tensors
    return facts


def describe_target(file: "_native.GgufFile", args: argparse.Namespace) -> dict[str, Any]:
    """What only a DS4 target has; for any other file `not_a_target` says why."""
    from ds4py import _native
    from ds4py.errors import FormatError

    try:
        found = _native.read_hyperparameters(file)
        memory = dict(_native.memory_needed(file, args.context, args.kv_dtype))
    except FormatError as error:
        return {"target": False, "not_a_target": str(error)}
    kinds = Counter(found.ratios)
    return {
        "target": True,
        "hyperparameters": {name: getattr(found, name) for name in HYPERPARAMETERS},
        "layers_by_ratio": {str(ratio): kinds[ratio] for ratio in sorted(kinds)},
        "memory": {"context": args.context, "kv_dtype": args.kv_dtype, **memory, "total": sum(memory.values())},
    }


def totals(tensors: Iterable[dict[str, Any]], key: Callable[[dict[str, Any]], str]) -> dict[str, dict[str, int]]:
    """Numbers of tensors, parameters and bytes by `key`, most bytes first."""
    groups: dict[str, dict[str, int]] = {}
    for tensor in tensors:
        group = groups.setdefault(key(tensor), {"tensors": 0, "parameters": 0, "bytes": 0})
        group["tensors"] += 1
        group["parameters"] += math.prod(tensor["shape"])
        group["bytes"] += tensor["bytes"]
    return dict(sorted(groups.items(), key=lambda item: -item[1]["bytes"]))


def render(facts: dict[str, Any]) -> str:
    """The description for a person."""
    sections = [head(facts)]
    if facts["target"]:
        sections += [target_section(facts), memory_section(facts["memory"])]
    else:
        sections += ["not a DS4 target: " + facts["not_a_target"]]
    sections += ["tensors by type\n" + totals_table(facts["types"]), "tensors by role\n" + totals_table(facts["roles"])]
    if "tensors" in facts:
        sections.append("tensors (shape: fastest dimension first)\n" + tensor_table(facts["tensors"]))
    return "\n\n".join(sections)


def head(facts: dict[str, Any]) -> str:
    """What the file is, in two lines."""
    files = facts["files"]
    shards = f", {len(files)} shards" if len(files) > 1 else ""
    return (
        f"{files[0]}{shards}\n"
        f"  {facts['name'] or 'no name'}: architecture {facts['architecture']}, GGUF version {facts['gguf_version']}, "
        f"{quantity(facts['parameters'])} parameters, {size(facts['bytes'])}"
    )


def target_section(facts: dict[str, Any]) -> str:
    """Hyperparameters and layers by kind."""
    numbers = [(name.replace("_", " "), str(value)) for name, value in facts["hyperparameters"].items()]
    layers = [
        (str(count), LAYER_KINDS.get(int(ratio), f"ratio {ratio}")) for ratio, count in facts["layers_by_ratio"].items()
    ]
    return f"hyperparameters\n{table(numbers)}\n\nlayers by kind\n{table(layers)}"


def memory_section(memory: dict[str, Any]) -> str:
    """Memory needed to run, split."""
    parts = [(name, size(memory[name])) for name in memory if name not in ("context", "kv_dtype")]
    return f"memory at a context of {memory['context']} with {memory['kv_dtype'].upper()} KV\n{table(parts)}"


def totals_table(groups: dict[str, dict[str, int]]) -> str:
    """One line a group."""
    return table(
        [
            (
                name,
                count(group["tensors"], "tensor"),
                f"{quantity(group['parameters'])} parameters",
                size(group["bytes"]),
            )
            for name, group in groups.items()
        ]
    )


def count(number: int, noun: str) -> str:
    """`1 tensor`, `2 tensors`."""
    return f"{number} {noun}" + ("" if number == 1 else "s")


def tensor_table(tensors: list[dict[str, Any]]) -> str:
    """One line a tensor, in the order of the file."""
    return table([(t["name"], t["type"], " x ".join(map(str, t["shape"])), size(t["bytes"])) for t in tensors])
