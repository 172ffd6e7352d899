"""Defines the flags that several commands share, and how their values are parsed."""

import argparse
import sys
from collections.abc import Callable, Sequence
from typing import Any

from ds4py.console import number
from ds4py.constants import MAX_DRAFT_LENGTH

DRAFTERS = ("auto", "off", "dspark", "lookup")

SAMPLING = (
    "temperature",
    "top_k",
    "top_p",
    "min_p",
    "repetition_penalty",
    "presence_penalty",
    "frequency_penalty",
    "penalty_last_n",
    "seed",
)
"""The flags of the sampling policy, by their names in `ds4py.Sampling`."""


class OldWidthFlag(argparse.Action):
    """The old name of `--draft-length`, which works for one more version."""

    def __call__(self, parser: object, namespace: argparse.Namespace, values: object, flag: object = None) -> None:
        """Sets the draft length, and says the new name on standard error."""
        print("ds4py: --width is now --draft-length", file=sys.stderr)
        namespace.draft_length = values


def draft_length(text: str) -> "int | str":
    """Converts a draft length: a number, or the name of a policy, which stays as it is."""
    from ds4py.speculative.draft_length import POLICIES

    if text in POLICIES:
        return text
    if not text.lstrip("-").isdigit():
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a draft length, wanted 0 to {MAX_DRAFT_LENGTH}, {', '.join(POLICIES)}"
        )
    return number(int, 0, MAX_DRAFT_LENGTH)(text)


def breaker(text: str) -> tuple[float, int, int]:
    """Parses a breaker such as `0.60/32/64`: acceptance, proposals, steps."""
    parts = text.split("/")
    if len(parts) != 3:
        raise argparse.ArgumentTypeError(f"{text!r} is not like 0.60/32/64: acceptance/proposals/steps")
    return number(float, 0, 1)(parts[0]), number(int, 1)(parts[1]), number(int, 1)(parts[2])


def token_ids(text: str) -> list[int]:
    """Parses `1,2,3` as token ids. The engine checks later that the vocabulary has them."""
    try:
        ids = [int(part) for part in text.split(",")]
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a list of token ids like 1,2,3") from None
    return ids


def layer_counts(text: str) -> tuple[int, ...]:
    """Parses `24,19` as layers of each device. The engine checks later that the model has as many."""
    return tuple(number(int, 1)(part) for part in text.split(","))


def add_command(
    commands: "argparse._SubParsersAction[Any]",
    name: str,
    run: Callable[[argparse.Namespace], int],
    *,
    help: str,
    description: str,
) -> argparse.ArgumentParser:
    """Adds the parser of a command that `run` carries out. Line ends of `description` stay as they are."""
    parser: argparse.ArgumentParser = commands.add_parser(
        name, help=help, description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.set_defaults(run=run)
    return parser


def add_model_flag(parser: argparse.ArgumentParser) -> None:
    """Adds the flag of the target, which is optional."""
    parser.add_argument("-m", "--model", metavar="FILE", help="target model (GGUF); default: an embedded tiny pair")


def add_drafter_flag(parser: "argparse._ActionsContainer") -> None:
    """Adds the flag of the drafter."""
    parser.add_argument("-md", "--drafter", metavar="FILE", help="DSpark drafter of the target (GGUF)")


def add_engine_flags(parser: argparse.ArgumentParser, *, context_help: str | None = None) -> None:
    """Adds the flags that decide how a model is run. `--context` is among them if it has a help text."""
    group = parser.add_argument_group("engine")
    if context_help:
        group.add_argument("-c", "--context", type=number(int, 1), metavar="N", help=context_help)
    group.add_argument(
        "-t",
        "--threads",
        type=number(int, 1),
        metavar="N",
        help="CPU threads (default: physical cores that other programs leave free)",
    )
    add_device_map_flags(group)
    group.add_argument(
        "--no-repack",
        action="store_true",
        help="do not interleave weights for the CPU's kernels: starts sooner, runs slower",
    )
    group.add_argument("--kv-dtype", choices=("f16", "f32"), default="f16", help="type of the KV state (default: f16)")


def add_device_map_flags(parser: "argparse._ActionsContainer") -> None:
    """Adds the flags of the device map: the devices, and which of them computes which layers and experts."""
    parser.add_argument(
        "--device",
        default="auto",
        metavar="NAMES",
        help="where the model runs: auto, cpu, cuda:0, hip:0, metal, vulkan:0 or rpc:HOST:PORT; several between commas "
        "share its layers",
    )
    parser.add_argument(
        "--split",
        type=layer_counts,
        default=(),
        metavar="N,N",
        help="layers of each device, such as 24,19 (default: equal parts)",
    )
    group = parser.add_mutually_exclusive_group()
    group.add_argument("--cpu-moe", action="store_true", help="keep the routed experts of all layers on the CPU")
    group.add_argument(
        "--n-cpu-moe",
        type=number(int, 0),
        default=0,
        metavar="N",
        help="keep the routed experts of the first N layers on the CPU",
    )


def device_map_arguments(args: argparse.Namespace) -> dict[str, Any]:
    """Returns the arguments of `Engine` that the flags of the device map stand for."""
    return {"device": args.device, "split": args.split, "cpu_moe": "all" if args.cpu_moe else args.n_cpu_moe}


def add_drafting_flags(parser: argparse.ArgumentParser) -> None:
    """Adds the flags of speculative decoding."""
    group = parser.add_argument_group("speculative decoding", "changes the speed, never the distribution of the text")
    add_drafter_flag(group)
    group.add_argument(
        "--draft",
        choices=DRAFTERS,
        default="auto",
        help="who proposes tokens: the drafter (dspark), the text so far (lookup), nobody (off), or with a drafter "
        "whichever promises more (auto; the default)",
    )
    group.add_argument(
        "--draft-length",
        type=draft_length,
        metavar="N",
        help="proposals to verify at once: auto is what measured costs and acceptance make the fastest; else 0 to "
        "the drafter's block, confidence, ewma or staged (default: auto; for the embedded pair, which is there to show "
        "drafting, all)",
    )
    group.add_argument("--width", dest="draft_length", type=draft_length, action=OldWidthFlag, help=argparse.SUPPRESS)
    group.add_argument(
        "--breaker",
        type=breaker,
        metavar="A/N/M",
        help="decode plainly for M steps after less than a share A of N proposals was accepted, such as 0.60/32/64",
    )
    group.add_argument(
        "--draft-vocab",
        type=number(int, 0),
        metavar="N",
        help="candidates of the drafter at each position, 0 for all (default: chosen by measurement)",
    )
    group.add_argument(
        "--accept",
        choices=("token", "match", "block"),
        default="token",
        help="rule of acceptance: token decides on proposals one by one, match compares them with draws from the "
        "target, block decides on them jointly (default: token)",
    )


def add_sampling_flags(parser: argparse.ArgumentParser) -> None:
    """Adds the flags of the sampling policy. Flags that are not given keep the defaults of `ds4py.Sampling`."""
    group = parser.add_argument_group("sampling")

    def add(flag: str, name: str, kind: Any, text: str, metavar: str = "X") -> None:
        group.add_argument(flag, dest=name, type=kind, metavar=metavar, help=text)

    add("--temp", "temperature", number(float, 0), "temperature; 0 is greedy (default: 1)")
    add("--top-k", "top_k", number(int, 0), "keep the k likeliest tokens (default: 0, off)", "N")
    add("--top-p", "top_p", number(float, 0, 1), "keep the likeliest tokens that reach p (default: 1, off)")
    add("--min-p", "min_p", number(float, 0, 1), "drop tokens under p times the likeliest (default: 0, off)")
    add("--repeat-penalty", "repetition_penalty", number(float, 0), "divide logits of seen tokens (default: 1, off)")
    add("--presence-penalty", "presence_penalty", number(float), "subtract once per seen token (default: 0)")
    add("--frequency-penalty", "frequency_penalty", number(float), "subtract per occurrence (default: 0)")
    add("--repeat-last-n", "penalty_last_n", number(int, -1), "tokens that count as seen (default: -1, all)", "N")
    add(
        "--seed",
        "seed",
        number(int, 0, 2**64 - 1),
        "seed of the draws (default: a new one, which is reported); repeats a text unless draft or draft "
        "length is auto",
        "N",
    )


def chosen_draft_length(args: argparse.Namespace) -> "int | str":
    """`--draft-length`, or its default."""
    if args.draft_length is not None:
        chosen: int | str = args.draft_length
        return chosen
    return "auto" if args.model else MAX_DRAFT_LENGTH


def drafting_arguments(args: argparse.Namespace) -> dict[str, Any]:
    """Returns the arguments of `Session.generate` that the flags of speculative decoding stand for."""
    from ds4py.speculative.draft_length import Breaker, as_draft_length

    policy = as_draft_length(chosen_draft_length(args))
    return {
        "draft": args.draft,
        "draft_length": Breaker(policy, *args.breaker) if args.breaker else policy,
        "draft_vocab": args.draft_vocab,
        "accept": args.accept,
    }


def add_output_flags(parser: argparse.ArgumentParser) -> None:
    """Adds `--json` and `--quiet`."""
    group = parser.add_argument_group("output")
    group.add_argument("--json", action="store_true", help="print one JSON object and nothing else")
    group.add_argument("-q", "--quiet", action="store_true", help="no messages or progress, only errors")


def sampling_arguments(args: argparse.Namespace, names: Sequence[str]) -> dict[str, Any]:
    """Returns those of the flags `names` that were given. The others keep the defaults of `ds4py.Sampling`."""
    return {name: getattr(args, name) for name in names if getattr(args, name) is not None}
