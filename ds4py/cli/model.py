"""Opening what the command line names: the model, and text files."""

import argparse
import os
import sys
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ds4py.cli.options import placement_arguments
from ds4py.console import Bar, UsageError, exits

if TYPE_CHECKING:
    from ds4py import Engine

EMBEDDED_NOTE = (
    "no model given (-m FILE): using the embedded pair DS4 tiny: it shows how things work, and knows nothing"
)


def note(args: argparse.Namespace, text: str) -> None:
    """Prints one line for a person on standard error, unless `--quiet`."""
    if not args.quiet:
        print("ds4py: " + text, file=sys.stderr, flush=True)


def open_engine(
    args: argparse.Namespace,
    path: str | None,
    drafter: str | None = None,
    loaded: Callable[[float], None] = lambda fraction: None,
) -> "Engine":
    """Loads the model at `path` (None: the embedded pair) and its drafter with a progress bar; says what they are.

    `loaded` is called with the fraction that is loaded; what it raises ends the loading.
    """
    import ds4py
    from ds4py import _native

    _native.exit_on_abort(exits.RUN_TIME)
    if path is None:
        note(args, EMBEDDED_NOTE)
    for file in (path, drafter):
        if file is not None:
            require_file(file)
    with warnings.catch_warnings(record=True) as caught, Bar("loading", quiet=args.quiet) as bar:
        warnings.simplefilter("always", ds4py.UnprovenDevice)

        def progress(fraction: float) -> None:
            loaded(fraction)
            bar.update(fraction)

        engine = ds4py.Engine(
            path,
            drafter=drafter,
            **placement_arguments(args),
            context=getattr(args, "context", None),
            threads=args.threads,
            repack=not args.no_repack,
            progress=progress,
        )
    for warning in caught:
        note(args, str(warning.message))
    if not engine.embedded:
        place = (
            f"device {engine.device_map}, threads {engine.threads}{nodes_note(engine.nodes, engine.spread_over_nodes)}"
        )
        note(args, f"model {engine.name} ({engine.path}), {place}")
    for each in engine.notes:
        note(args, each)
    if engine.drafter is not None:
        note(args, f"drafter: {engine.drafter}" + (f" ({drafter})" if drafter else ""))
    return engine


def identity(engine: "Engine") -> dict[str, Any]:
    """The model, for `--json`."""
    return {"name": engine.name, "path": str(engine.path), "embedded": engine.embedded}


def nodes_note(nodes: int, spread: bool) -> str:
    """What there is to say of NUMA nodes, after a comma; nothing with one."""
    if nodes < 2:
        return ""
    how = "weights on all of them in turn" if spread else "weights wherever the system put them"
    return f", {nodes} NUMA nodes ({how})"


def require_file(path: str) -> None:
    """Raises the OSError of a file that cannot be read, before anything is loaded."""
    with open(path, "rb"):
        pass


def read_text(path: str) -> str:
    """The text of a UTF-8 file, or of standard input for `-`, with its line ends as they are."""
    if path == "-":
        return decode(sys.stdin.buffer.read(), "standard input")
    with open(path, "rb") as file:
        return decode(file.read(), os.fspath(path))


def decode(data: bytes, where: str) -> str:
    """Decodes UTF-8; raises UsageError that says where it is broken."""
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise UsageError(f"{where} is not UTF-8 text: bad byte at offset {error.start}") from None
