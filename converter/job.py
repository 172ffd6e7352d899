"""Runs one conversion of the command line."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from ds4py.console import Bar, UsageError, exits, size, table

from . import convert, packing, shards, writer
from .contracts import Contract
from .imatrix import read_imatrix
from .plan import OutputFile
from .presets import DEFAULT, PRESETS, TypeSelector, override
from .shards import File
from .source.checkpoint import Checkpoint
from .source.gguf_file import GgufSource


def run(args: argparse.Namespace) -> int:
    """Plans the outputs, prints a summary, writes the files, and returns the exit code."""
    check_flags(args)
    source = Path(args.source)
    options = conversion_options(args)
    if source.is_dir():
        checkpoint = Checkpoint(source)
        outputs = from_checkpoint(args, checkpoint, options)
        identity = checkpoint.identity()
    else:
        found = GgufSource(source)
        outputs, identity = [convert.requantised(found, Path(args.output), options)], found.identity()
    options.types.require_all_used()
    if args.pack:
        outputs = [packing.pack_output(output) for output in outputs]
    limit = None if args.split is None else shards.size_limit(args.split)
    files = [file for output in outputs for file in shards.plan_files(output, limit)]
    check_paths(args, files, outputs, source)
    for line in [*options.types.notes, *(summary(output) for output in outputs)]:
        note(args, line)
    with Bar("converting", quiet=args.quiet) as bar:
        threads = args.threads or all_cores()
        writer.write(files, identity, threads, bar.update, lambda line: note(args, line))
    for file in files:
        note(args, f"wrote {file.path} ({size(file.size)})")
    return exits.OK


def conversion_options(args: argparse.Namespace) -> convert.ConversionOptions:
    """Builds the options of the conversion from the flags."""
    return convert.ConversionOptions(
        types=TypeSelector(PRESETS[args.preset or DEFAULT], [override(each) for each in args.types]),
        keep_types=args.pack and args.preset is None,
        contract=Contract(args.contract or Contract.DFLASH.value),
        imatrix=None if args.imatrix is None else read_imatrix(Path(args.imatrix)),
        name=args.name,
        chat_template=None if args.chat_template is None else Path(args.chat_template),
    )


def from_checkpoint(
    args: argparse.Namespace, checkpoint: Checkpoint, options: convert.ConversionOptions
) -> list[OutputFile]:
    """Plans the target of a checkpoint, its drafter, or both."""
    outputs = [] if args.dspark_only else [convert.target(checkpoint, Path(args.output), options)]
    path = args.output if args.dspark_only else args.drafter
    if path is not None:
        outputs.append(convert.drafter(checkpoint, Path(path), options))
    return outputs


def check_flags(args: argparse.Namespace) -> None:
    """Raises UsageError for flags that contradict one another or the source."""
    if args.dspark_only and args.drafter is not None:
        raise UsageError("--dspark-only writes the drafter to OUTPUT: leave --drafter out")
    if args.contract is not None and not (args.dspark_only or args.drafter):
        raise UsageError("--contract is about a drafter: add --dspark-only or --drafter FILE")
    if not Path(args.source).is_dir():
        for flag, given in (
            ("--dspark-only", args.dspark_only), ("--drafter", args.drafter), ("--name", args.name),
            ("--chat-template", args.chat_template),
        ):  # fmt: skip
            if given:
                raise UsageError(f"{flag} wants a checkpoint folder; requantising a GGUF file keeps what it is")


def check_paths(args: argparse.Namespace, files: list[File], outputs: list[OutputFile], source: Path) -> None:
    """Raises UsageError if an output would destroy a file, or has no folder."""
    if len({output.path.absolute() for output in outputs}) < len(outputs):
        raise UsageError("target and drafter cannot go to the same file")
    for file in files:
        if not file.path.parent.is_dir():
            raise UsageError(f"{file.path.parent}: no such folder")
        if file.path.exists() and source.is_file() and file.path.samefile(source):
            raise UsageError(f"{file.path} is the source itself; write to another file")
        if file.path.exists() and not args.overwrite:
            raise UsageError(f"{file.path} exists; --overwrite replaces it")


def all_cores() -> int:
    """Returns the number of processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def summary(output: OutputFile) -> str:
    """Formats the number and size of an output's tensors by type."""
    groups: dict[str, list[int]] = {}
    for tensor in output.tensors:
        group = groups.setdefault(tensor.kind.name, [0, 0])
        group[0] += 1
        group[1] += tensor.nbytes
    rows = [(kind, f"{count} tensors", size(nbytes)) for kind, (count, nbytes) in groups.items()]
    return f"{output.path}:\n{table(rows)}"


def note(args: argparse.Namespace, line: str) -> None:
    """Prints a message on standard error, unless `--quiet` is given."""
    if not args.quiet:
        print("deepseek4-quantize: " + line, file=sys.stderr, flush=True)
