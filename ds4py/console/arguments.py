"""Defines an argument parser with errors of one line, and parsers for numbers in flags."""

import argparse
import math
from collections.abc import Callable
from typing import Any, NoReturn, TypeVar

from ds4py.console.exits import UsageError

Number = TypeVar("Number", int, float)


class Parser(argparse.ArgumentParser):
    """An argument parser that reports errors in one line and accepts no abbreviated flags."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(allow_abbrev=False, **kwargs)

    def error(self, message: str) -> NoReturn:
        """Raises UsageError instead of printing the usage and leaving."""
        raise UsageError(f"{message} (try '{self.prog} --help')")


class PrintVersion(argparse.Action):
    """The action of `--version`."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(nargs=0, help="print the version and leave", **kwargs)

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        """Prints `ds4py VERSION (COMMIT)` and ends the program."""
        import ds4py

        print(f"ds4py {ds4py.__version__} ({ds4py.__commit__})")
        parser.exit()


def number(
    kind: Callable[[str], Number], low: float | None = None, high: float | None = None
) -> Callable[[str], Number]:
    """Returns a parser for `type=` that accepts finite numbers of `kind` in [low, high]."""

    def convert(text: str) -> Number:
        try:
            value = kind(text)
        except ValueError:
            wanted = "a whole number" if kind is int else "a number"
            raise argparse.ArgumentTypeError(f"{text!r} is not {wanted}") from None
        if not math.isfinite(value) or (low is not None and value < low) or (high is not None and value > high):
            raise argparse.ArgumentTypeError(f"{text} is out of range, wanted {limits(low, high)}")
        return value

    return convert


def limits(low: float | None, high: float | None) -> str:
    """Describes a range in words. None means no limit."""
    if low is None:
        return "a finite number"
    return f"{low} or more" if high is None else f"between {low} and {high}"
