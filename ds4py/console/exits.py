"""Defines the exit codes, and the error of a command line that cannot be carried out."""

import io
import os
import sys

OK = 0
RUN_TIME = 1
"""A device, memory, input or output failed while the command ran."""
USAGE = 2
"""The request cannot be carried out: wrong flags or values, or a prompt that is empty or too long."""
BAD_FILE = 3
"""The model file is malformed, truncated, or not a DS4 model."""
INTERRUPTED = 130
"""Ctrl-C stopped the command. Text that was generated before has been printed."""
BROKEN_PIPE = 141
"""The reader of standard output has closed it."""


class UsageError(Exception):
    """The command line is wrong. The message is one line that says what is wrong and what to do."""


def prepare_streams() -> None:
    """Replaces closed standard streams by empty ones, and prints characters that the terminal lacks as `?`."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115
    if isinstance(sys.stdout, io.TextIOWrapper):  # tests replace it by other objects
        sys.stdout.reconfigure(errors="replace")


def silence_stdout() -> None:
    """Redirects standard output to nothing, so that the interpreter's last flush cannot fail on a closed pipe."""
    devnull = os.open(os.devnull, os.O_WRONLY)
    os.dup2(devnull, sys.stdout.fileno())
    os.close(devnull)
