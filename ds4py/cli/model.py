"""Opens the models and text files that a command line names."""

import argparse
import os
import sys
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING

from ds4py.cli.options import device_map_arguments
from ds4py.console import Bar, UsageError, exits
from ds4py.json_types import Json

if TYPE_CHECKING:
    from ds4py import Engine

EMBEDDED_NOTE = (
    "no model given (-m FILE): using the embedded pair DS4 tiny: it shows how things work, and knows nothing"
)


def note(args: argparse.Namespace, text: str) -> None:
    """Prints a message on standard error, unless `--quiet` is given."""
    if not args.quiet:
        print("ds4py: " + text, file=sys.stderr, flush=True)


def open_engine(
    args: argparse.Namespace,
    path: str | None,
    drafter: str | None = None,
    on_progress: Callable[[float], None] = lambda fraction: None,
) -> "Engine":
    """Loads a model and its drafter with a progress bar, and prints what they are.

    Without `path` it loads the embedded pair. `on_progress` receives the fraction that is loaded. An exception that it
    raises ends the loading.
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
            on_progress(fraction)
            bar.update(fraction)

        engine = ds4py.Engine(
            path,
            drafter=drafter,
            **device_map_arguments(args),
            context=getattr(args, "context", None),
            threads=args.threads,
            repack=not args.no_repack,
            progress=progress,
        )
    for warning in caught:
        note(args, str(warning.message))
    note_engine(args, engine, drafter)
    return engine


def note_engine(args: argparse.Namespace, engine: "Engine", drafter: str | None) -> None:
    """Prints the model, the devices that it is on, its notes, and its drafter."""
    if not engine.embedded:
        nodes = nodes_note(engine.nodes, engine.spread_over_nodes)
        note(
            args,
            f"model {engine.name} ({engine.path}), device {engine.placement}, threads {engine.threads}{nodes}",
        )
    for each in engine.notes:
        note(args, each)
    if engine.drafter is not None:
        note(args, f"drafter: {engine.drafter}" + (f" ({drafter})" if drafter else ""))


def model_facts(engine: "Engine") -> Json:
    """Returns name and path of the model for `--json`."""
    return {"name": engine.name, "path": str(engine.path), "embedded": engine.embedded}


def nodes_note(nodes: int, spread: bool) -> str:
    """Describes the NUMA nodes, as the end of a sentence. The text is empty on a machine with one node."""
    if nodes < 2:
        return ""
    how = "weights on all of them in turn" if spread else "weights wherever the system put them"
    return f", {nodes} NUMA nodes ({how})"


def require_file(path: str) -> None:
    """Raises OSError for a file that cannot be read, before anything is loaded."""
    with open(path, "rb"):
        pass


def read_text(path: str) -> str:
    """Reads a UTF-8 file, or standard input if the path is `-`. Line ends stay as they are."""
    if path == "-":
        return decode(sys.stdin.buffer.read(), "standard input")
    with open(path, "rb") as file:
        return decode(file.read(), os.fspath(path))


def decode(data: bytes, where: str) -> str:
    """Decodes UTF-8. Raises UsageError with the offset of the first bad byte."""
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise UsageError(f"{where} is not UTF-8 text: bad byte at offset {error.start}") from None
