"""Runs a command, and turns each failure into one line on standard error and an exit code."""

import sys
from collections.abc import Callable

from ds4py.console import exits


def guarded(program: str, command: Callable[[], int], *, interrupted: str = "") -> int:
    """Runs `command` and returns its exit code.

    A failure is one line on standard error. After Ctrl-C the line is `interrupted`, or nothing if that is empty.
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
    """Describes a failure in one line."""
    if isinstance(error, OSError) and error.strerror is not None:
        return error.strerror if error.filename is None else f"{error.filename}: {error.strerror}"
    if isinstance(error, MemoryError):
        return "out of memory (a smaller context, -c, needs less)"
    return " ".join(str(error).split())


def exit_code(error: Exception) -> int:
    """Returns the exit code of a failure. Raises `error` again if it is no exception of this project."""
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
