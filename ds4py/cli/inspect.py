"""Defines `ds4py inspect`, which describes a GGUF file and the memory that it takes to run."""

import argparse
import json
import math
from collections import Counter
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from ds4py.cli.inspect_text import render
from ds4py.cli.model import require_file
from ds4py.cli.options import add_command, add_device_map_flags, device_map_arguments
from ds4py.cli.tensor_roles import role
from ds4py.console import exits, number
from ds4py.json_types import Json

if TYPE_CHECKING:
    from ds4py import _native

DESCRIPTION = """\
Describes a GGUF file, or all shards of a split one: whether it is a target or a DSpark drafter, its hyperparameters,
its tensors by type and by role, and the memory that a target needs at a context. With -m TARGET it says whether a
drafter fits that target. It reads headers and small tensors only. Other GGUF files are described as far as possible,
with the reasons why they are neither.

The exit code is 0 for any GGUF file. With -m it is 3 unless the file is a drafter that fits."""

DEFAULT_CONTEXT = 4096
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
        "-c",
        "--context",
        type=number(int, 1),
        default=DEFAULT_CONTEXT,
        metavar="N",
        help=f"positions for which memory is counted (default: {DEFAULT_CONTEXT})",
    )
    parser.add_argument(
        "--kv-dtype", choices=("f16", "f32"), default="f16", help="type of the KV state that is counted (default: f16)"
    )
    parser.add_argument(
        "-md", "--drafter", metavar="FILE", help="count the memory of this drafter of the target FILE, too"
    )
    add_device_map_flags(parser.add_argument_group("device map", "where memory is counted"))
    parser.add_argument("--tensors", action="store_true", help="list every tensor")
    parser.add_argument("--json", action="store_true", help="print one JSON object and nothing else")


def run(args: argparse.Namespace) -> int:
    """Prints the description of a file, and returns the exit code."""
    from ds4py import _native

    require_file(args.file)
    facts = describe(_native.GgufFile.open(args.file), args)
    print(json.dumps(facts, ensure_ascii=False) if args.json else render(facts))
    return exits.OK if facts.get("pair", {"fits": True})["fits"] else exits.BAD_FILE


def describe(file: "_native.GgufFile", args: argparse.Namespace) -> Json:
    """Gathers everything that is printed, as plain values. Sizes are in bytes."""
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


def describe_target(file: "_native.GgufFile", args: argparse.Namespace) -> Json:
    """Gathers the facts of a DS4 target. For any other file, `not_a_target` gives the reason."""
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


def describe_memory(file: "_native.GgufFile", layers: int, args: argparse.Namespace) -> Json:
    """Gathers the memory that each device would hold, and whether it fits.

    Raises PairError if the drafter does not fit the target.
    """
    from ds4py import _native
    from ds4py.memory import DeviceOptions, measure_files

    if args.drafter is not None:
        require_file(args.drafter)
    drafter = None if args.drafter is None else _native.GgufFile.open(args.drafter)
    chosen = device_map_arguments(args)
    experts = layers if chosen["cpu_moe"] == "all" else chosen["cpu_moe"]
    measure = measure_files(file, drafter, kv_dtype=args.kv_dtype)
    needs = measure(DeviceOptions(chosen["device"], chosen["split"], experts, args.context))
    devices = [
        {"device": need.device, **need.parts, "needed": need.needed, "available": need.available, "fits": need.fits}
        for need in needs
    ]
    return {"context": args.context, "kv_dtype": args.kv_dtype, "devices": devices}


def describe_drafter(file: "_native.GgufFile") -> Json:
    """Gathers the facts of a DSpark drafter. For any other file, `not_a_drafter` gives the reason."""
    from ds4py import _native
    from ds4py.errors import FormatError

    try:
        found = _native.read_drafter(file)
    except FormatError as error:
        return {"drafter": None, "not_a_drafter": str(error)}
    kind = {"contract": found.contract, "stages": found.stages.layers}
    return {"drafter": kind | {name: getattr(found, name) for name in DRAFTER_NUMBERS}}


def describe_pair(file: "_native.GgufFile", target: str) -> Json:
    """Tells whether a drafter fits a target.

    Raises FormatError if one of the files is not what it should be.
    """
    from ds4py import _native
    from ds4py.errors import PairError

    require_file(target)
    numbers = _native.read_hyperparameters(_native.GgufFile.open(target))
    try:
        _native.read_drafter(file, numbers)
    except PairError as error:
        return {"target": target, "fits": False, "reason": str(error)}
    return {"target": target, "fits": True}


def totals(tensors: Iterable[Json], key: Callable[[Json], str]) -> dict[str, dict[str, int]]:
    """Adds up tensors, parameters and bytes for each value of `key`. The largest group in bytes comes first."""
    groups: dict[str, dict[str, int]] = {}
    for tensor in tensors:
        group = groups.setdefault(key(tensor), {"tensors": 0, "parameters": 0, "bytes": 0})
        group["tensors"] += 1
        group["parameters"] += math.prod(tensor["shape"])
        group["bytes"] += tensor["bytes"]
    return dict(sorted(groups.items(), key=lambda item: -item[1]["bytes"]))
