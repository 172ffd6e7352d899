"""Runs a command so that each failure is one line on standard error and has its exit code."""

import sys
from collections.abc import Callable

from ds4py.console import exits


def guarded(program: str, command: Callable[[], int], *, interrupted: str = "") -> int:
    """Runs a command and returns its exit code; a failure is one line on standard error.

    Args:
        program: the name that begins the line.
        interrupted: a line for Ctrl-C; none where it is empty.
    """
    exits.prepare_streams()
    try:
        code = command()
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        exits.silence_stdout()
        return exits.BROKEN_PIPE
    except KeyboardInterrupt:
        if interrupted:
            print(f"{program}: {interrupted}", file=sys.stderr)
        return exits.INTERRUPTED
    except Exception as error:
        code = exit_code(error)
        print(f"{program}: error: {describe_failure(error)}", file=sys.stderr)
        return code


def describe_failure(error: Exception) -> str:
    """Returns the message of a failure as one line."""
    if isinstance(error, OSError) and error.strerror is not None:
        return error.strerror if error.filename is None else f"{error.filename}: {error.strerror}"
    if isinstance(error, MemoryError):
        return "out of memory (a smaller context, -c, needs less)"
    return " ".join(str(error).split())


def exit_code(error: Exception) -> int:
    """Returns the exit code of a failure; an exception that ds4py does not raise on purpose is raised again."""
    from ds4py import errors

    codes: list[tuple[type[Exception], int]] = [
        (exits.UsageError, exits.USAGE),
        (errors.RequestError, exits.USAGE),
        (errors.FormatError, exits.BAD_FILE),
        (errors.PairError, exits.BAD_FILE),
        (errors.Cancelled, exits.INTERRUPTED),
        (errors.Error, exits.RUN_TIME),
        (OSError, exits.RUN_TIME),
        (MemoryError, exits.RUN_TIME),
    ]
    for kind, code in codes:
        if isinstance(error, kind):
            return code
    raise error
