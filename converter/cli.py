"""Defines `deepseek4-quantize`, which converts checkpoints, requantises GGUF files, checks and compares them."""

import argparse
from collections.abc import Sequence

from ds4py.console import Parser, PrintVersion, UsageError, guarded, number

from .contracts import WRITTEN
from .presets import DEFAULT, PRESETS

PROGRAM = "deepseek4-quantize"

DESCRIPTION = """\
Makes a GGUF file of a DeepSeek-V4 checkpoint (a folder with safetensors shards, config.json and tokenizer files), or
of another GGUF file. Tensors are streamed, so memory stays small for any model size. After an interruption, the same
command continues where it stopped."""

EPILOG = """\
examples:
  deepseek4-quantize DeepSeek-V4-Flash target.gguf --preset mxfp4
  deepseek4-quantize DeepSeek-V4-Flash-0731 target.gguf --drafter drafter.gguf --preset q2 --imatrix imatrix.gguf
  deepseek4-quantize DeepSeek-V4-Flash-0731 drafter.gguf --dspark-only --contract ds4
  deepseek4-quantize target-f16.gguf target.gguf --preset q4 --type 'blk.*.ffn_down_exps=Q6_K' --split 48G
  deepseek4-quantize target.gguf target-packed.gguf --pack
  deepseek4-quantize --check drafter.gguf --target target.gguf
  deepseek4-quantize --compare target-f32.gguf target.gguf

exit codes: 0 done, 1 failed while running (a disk that is full, a file that cannot be read), 2 wrong usage,
3 bad source or model file, 130 interrupted. Messages go to standard error, results to standard output."""


def build_parser() -> argparse.ArgumentParser:
    """Builds the parser of the command line."""
    parser = Parser(
        prog=PROGRAM,
        usage=f"{PROGRAM} SOURCE OUTPUT [options] | --check FILE [--target FILE] | --compare FILE FILE",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("source", nargs="?", metavar="SOURCE", help="checkpoint folder, or a GGUF file")
    parser.add_argument("output", nargs="?", metavar="OUTPUT", help="GGUF file to write")
    add_output_flags(parser)
    add_type_flags(parser)
    add_metadata_flags(parser)
    add_other_modes(parser)
    parser.add_argument("-t", "--threads", type=number(int, 1), metavar="N", help="threads (default: all cores)")
    parser.add_argument("-q", "--quiet", action="store_true", help="no messages or progress, only errors")
    parser.add_argument("--version", action=PrintVersion)
    return parser


def add_output_flags(parser: argparse.ArgumentParser) -> None:
    """Adds the flags that say what is written, and into which files."""
    group = parser.add_argument_group("output")
    group.add_argument("--dspark-only", action="store_true", help="write only the checkpoint's drafter, to OUTPUT")
    group.add_argument("--drafter", metavar="FILE", help="write the drafter too, to this file")
    group.add_argument(
        "--contract",
        choices=[contract.value for contract in WRITTEN],
        help="format of the drafter's names and keys (default: dflash, which is llama.cpp's)",
    )
    group.add_argument("--split", metavar="SIZE", help="shards of at most this size, such as 48G (powers of 1000)")
    group.add_argument(
        "--pack",
        action="store_true",
        help="interleave the weights for ds4py's CPU kernels, which then use the file as it lies: even a large model "
        "starts in seconds. Nothing else can read it",
    )
    group.add_argument("--overwrite", action="store_true", help="replace files that exist")


def add_type_flags(parser: argparse.ArgumentParser) -> None:
    """Adds the flags that choose types."""
    group = parser.add_argument_group("types")
    lines = "; ".join(f"{name}: {preset.text}" for name, preset in PRESETS.items())
    default = f"(default: {DEFAULT}, but --pack keeps the types of a GGUF file)"
    group.add_argument("--preset", choices=list(PRESETS), help=f"{default} {lines}")
    group.add_argument(
        "--type",
        action="append",
        default=[],
        dest="types",
        metavar="PATTERN=TYPE",
        help="type of the tensors whose names in the output fit; may be repeated, the last that fits decides",
    )
    group.add_argument("--imatrix", metavar="FILE", help="importance matrix, .gguf or .dat")


def add_metadata_flags(parser: argparse.ArgumentParser) -> None:
    """Adds the flags for metadata that the source does not have."""
    group = parser.add_argument_group("metadata")
    group.add_argument("--name", help="general.name (default: the name of the checkpoint's folder)")
    group.add_argument("--chat-template", metavar="FILE", help="Jinja file, instead of the checkpoint's own template")


def add_other_modes(parser: argparse.ArgumentParser) -> None:
    """Adds the flags of the modes that write nothing."""
    group = parser.add_argument_group("other modes")
    modes = group.add_mutually_exclusive_group()
    modes.add_argument("--check", metavar="FILE", help="validate a GGUF file: target, or drafter of any contract")
    modes.add_argument("--compare", nargs=2, metavar="FILE", help="relative error of the second file by role")
    group.add_argument("--target", metavar="FILE", help="with --check: the target that a drafter is to fit")
    group.add_argument("--json", action="store_true", help="with --check and --compare: print one JSON object")


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command and returns its exit code. Every failure is one line on stderr (`ds4py.console.exits`)."""
    return guarded(
        PROGRAM,
        lambda: run(build_parser().parse_args(argv)),
        interrupted="interrupted; the same command goes on from here",
    )


def run(args: argparse.Namespace) -> int:
    """Chooses the mode and runs it. Raises UsageError if the flags do not belong together."""
    for flag, given in (("--target", args.target), ("--json", args.json)):
        if given and not (args.check or args.compare):
            raise UsageError(f"{flag} belongs to --check (and --json to --compare, too)")
    if args.check or args.compare:
        if args.source is not None:
            raise UsageError("--check and --compare write nothing: leave SOURCE and OUTPUT out")
        from . import report

        return report.check(args) if args.check else report.compare(args)
    if args.source is None or args.output is None:
        raise UsageError(f"wanted SOURCE and OUTPUT, or --check, or --compare (try '{PROGRAM} --help')")
    from . import job

    return job.run(args)
