"""Exit codes, and the error for a command line that is wrong."""

import io
import os
import sys

OK = 0
"""The command did what was asked."""
RUN_TIME = 1
"""A device, memory or input/output failed while the command ran."""
USAGE = 2
"""The command line asks for what cannot be done: flags, values, an empty or too long prompt."""
BAD_FILE = 3
"""The model file is malformed, truncated, or not a DeepSeek-V4 model."""
INTERRUPTED = 130
"""The user pressed Ctrl-C; what was generated until then is printed."""
BROKEN_PIPE = 141
"""The reader of standard output closed it."""


class UsageError(Exception):
    """The command line is wrong; the message is one line that says what and what to do."""


def prepare_streams() -> None:
    """Replaces closed standard streams by empty ones, and lets characters that an encoding lacks become `?`."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115
    if isinstance(sys.stdout, io.TextIOWrapper):  # tests put other things there
        sys.stdout.reconfigure(errors="replace")


def silence_stdout() -> None:
    """Points standard output at nothing, so that the interpreter's last flush cannot fail on a closed pipe."""
    devnull = os.open(os.devnull, os.O_WRONLY)
    os.dup2(devnull, sys.stdout.fileno())
    os.close(devnull)
