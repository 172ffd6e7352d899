"""`ds4py inspect`: what a GGUF file is, what is in it, and what it takes to run."""

import argparse
import json
import math
from collections import Counter
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from ds4py._native import CSA_RATIO, HCA_RATIO
from ds4py.cli.model import require_file
from ds4py.cli.options import add_command, add_placement_flags, placement_arguments
from ds4py.cli.roles import role
from ds4py.console import exits, number, quantity, size, table

if TYPE_CHECKING:
    from ds4py import _native

DESCRIPTION = """\
Tells what a GGUF file (or any shard of a split one) is: a target or a DSpark drafter, its hyperparameters, tensors by
type and by role, and the memory a target needs to run at a context. With -m TARGET it tells whether a drafter fits
that target. Reads headers and small tensors only. Other GGUF files are described as far as possible, with the reasons
why they are neither.

The exit code is 0 for any GGUF file; with -m it is 3 unless the file is a drafter that fits."""

DEFAULT_CONTEXT = 4096
LAYER_KINDS = {
    0: "window only",
    CSA_RATIO: f"window + ratio {CSA_RATIO}, indexed (CSA)",
    HCA_RATIO: f"window + ratio {HCA_RATIO} (HCA)",
}
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
DRAFTER_NUMBERS = ("block", "from_anchor", "rank", "taps", "noise", "confidence", "confidence_markov")


def add_parser(commands: "argparse._SubParsersAction[Any]") -> None:
    """Adds the command and its flags."""
    parser = add_command(
        commands, "inspect", run, help="tell what a GGUF file is and what it needs", description=DESCRIPTION
    )
    parser.add_argument("file", metavar="FILE", help="a GGUF file")
    parser.add_argument("-m", "--model", metavar="TARGET", help="the target that the drafter FILE should fit")
    parser.add_argument(
        "-c", "--context", type=number(int, 1), default=DEFAULT_CONTEXT, metavar="N", help="for the memory needed"
    )
    parser.add_argument("--kv-dtype", choices=("f16", "f32"), default="f16", help="for the memory needed")
    parser.add_argument("-md", "--drafter", metavar="FILE", help="for the memory needed: a drafter of the target FILE")
    add_placement_flags(parser.add_argument_group("placement", "for the memory needed"))
    parser.add_argument("--tensors", action="store_true", help="list every tensor")
    parser.add_argument("--json", action="store_true", help="print one JSON object and nothing else")


def run(args: argparse.Namespace) -> int:
    """Prints the description; returns the exit code."""
    from ds4py import _native

    require_file(args.file)
    facts = describe(_native.GgufFile.open(args.file), args)
    print(json.dumps(facts, ensure_ascii=False) if args.json else render(facts))
    return exits.OK if facts.get("pair", {"fits": True})["fits"] else exits.BAD_FILE


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
        "packed_layout": metadata.get("ds4.packed.layout"),
        "gguf_version": file.version,
        "bytes": file.file_bytes,
        "parameters": sum(math.prod(tensor["shape"]) for tensor in tensors),
        "types": totals(tensors, lambda tensor: tensor["type"]),
        "roles": totals(tensors, lambda tensor: tensor["role"]),
        **describe_target(file, args),
    }
    facts |= {"drafter": None} if facts["target"] else describe_drafter(file)
    if args.model is not None:
        facts["pair"] = describe_pair(file, args.model)
    if args.tensors:
        facts["tensors"] = tensors
    return facts


def describe_target(file: "_native.GgufFile", args: argparse.Namespace) -> dict[str, Any]:
    """What only a DS4 target has; for any other file `not_a_target` says why."""
    from ds4py import _native
    from ds4py.errors import FormatError

    try:
        found = _native.read_hyperparameters(file)
    except FormatError as error:
        return {"target": False, "not_a_target": str(error)}
    kinds = Counter(found.ratios)
    return {
        "target": True,
        "hyperparameters": {name: getattr(found, name) for name in HYPERPARAMETERS},
        "layers_by_ratio": {str(ratio): kinds[ratio] for ratio in sorted(kinds)},
        "memory": describe_memory(file, found.layers, args),
    }


def describe_memory(file: "_native.GgufFile", layers: int, args: argparse.Namespace) -> dict[str, Any]:
    """What each device would hold, and whether that is possible. Raises PairError where a drafter does not fit."""
    from ds4py import _native
    from ds4py.memory.plan import DeviceOptions, measure_files

    if args.drafter is not None:
        require_file(args.drafter)
    drafter = None if args.drafter is None else _native.GgufFile.open(args.drafter)
    chosen = placement_arguments(args)
    experts = layers if chosen["cpu_moe"] == "all" else chosen["cpu_moe"]
    measure = measure_files(file, drafter, kv_dtype=args.kv_dtype)
    needs = measure(DeviceOptions(chosen["device"], chosen["split"], experts, args.context))
    devices = [
        {"device": need.device, **need.parts, "needed": need.needed, "available": need.available, "fits": need.fits}
        for need in needs
    ]
    return {"context": args.context, "kv_dtype": args.kv_dtype, "devices": devices}


def describe_drafter(file: "_native.GgufFile") -> dict[str, Any]:
    """What only a DSpark drafter has; for any other file `not_a_drafter` says why."""
    from ds4py import _native
    from ds4py.errors import FormatError

    try:
        found = _native.read_drafter(file)
    except FormatError as error:
        return {"drafter": None, "not_a_drafter": str(error)}
    kind = {"contract": found.contract, "stages": found.stages.layers}
    return {"drafter": kind | {name: getattr(found, name) for name in DRAFTER_NUMBERS}}


def describe_pair(file: "_native.GgufFile", target: str) -> dict[str, Any]:
    """Whether the drafter fits the target; raises FormatError where either file is not what it should be."""
    from ds4py import _native
    from ds4py.errors import PairError

    require_file(target)
    numbers = _native.read_hyperparameters(_native.GgufFile.open(target))
    try:
        _native.read_drafter(file, numbers)
    except PairError as error:
        return {"target": target, "fits": False, "reason": str(error)}
    return {"target": target, "fits": True}


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
        sections += ["not a DS4 target: " + facts["not_a_target"], drafter_section(facts)]
    if "pair" in facts:
        sections += [f"fits {facts['pair']['target']}" if facts["pair"]["fits"] else facts["pair"]["reason"]]
    sections += ["tensors by type\n" + totals_table(facts["types"]), "tensors by role\n" + totals_table(facts["roles"])]
    if "tensors" in facts:
        sections.append("tensors (shape: fastest dimension first)\n" + tensor_table(facts["tensors"]))
    return "\n\n".join(sections)


def head(facts: dict[str, Any]) -> str:
    """What the file is, in two lines."""
    files = facts["files"]
    shards = f", {len(files)} shards" if len(files) > 1 else ""
    architecture = str(facts["architecture"]) + ("" if facts["packed_layout"] is None else ", packed for the CPU")
    return (
        f"{files[0]}{shards}\n"
        f"  {facts['name'] or 'no name'}: architecture {architecture}, GGUF version {facts['gguf_version']}, "
        f"{quantity(facts['parameters'])} parameters, {size(facts['bytes'])}"
    )


def target_section(facts: dict[str, Any]) -> str:
    """Hyperparameters and layers by kind."""
    numbers = [(name.replace("_", " "), str(value)) for name, value in facts["hyperparameters"].items()]
    layers = [
        (str(count), LAYER_KINDS.get(int(ratio), f"ratio {ratio}")) for ratio, count in facts["layers_by_ratio"].items()
    ]
    return f"hyperparameters\n{table(numbers)}\n\nlayers by kind\n{table(layers)}"


def drafter_section(facts: dict[str, Any]) -> str:
    """The numbers of a drafter, or why it is none."""
    if facts["drafter"] is None:
        return f"not a DSpark drafter: {facts['not_a_drafter']}"
    numbers = [(name.replace("_", " "), in_words(value)) for name, value in facts["drafter"].items()]
    return f"DSpark drafter\n{table(numbers)}"


def in_words(value: object) -> str:
    """A fact as a person writes it."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def memory_section(memory: dict[str, Any]) -> str:
    """Memory needed to run, by device and part."""
    from ds4py.memory.plan import NAMES, PARTS

    sections = [f"memory at a context of {memory['context']} with {memory['kv_dtype'].upper()} KV, counted from sizes"]
    for device in memory["devices"]:
        parts = [(NAMES.get(part, part), size(device[part])) for part in PARTS if device[part]]
        parts += [("needed" if device["fits"] else "needed (does not fit)", size(device["needed"]))]
        parts += [("free", size(device["available"]))]
        sections.append(f"  {device['device']}\n{table(parts, indent=4)}")
    return "\n".join(sections)


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
