"""The errors: everything that ds4py raises on purpose is a `ds4py.Error`.

`FormatError` is about a file, `PairError` about a target and a drafter that do not fit together,
`RequestError` about what the caller asked for, `BackendError` about a device or its memory, and
`Cancelled` says that a call was stopped. The classes are those of the core, so one `except` serves
both the C++ and the Python side.
"""

from ds4py._native import BackendError, Cancelled, Error, FormatError, PairError, RequestError

__all__ = [
    "BackendError",
    "Cancelled",
    "Error",
    "FormatError",
    "PairError",
    "PromptTooLong",
    "RequestError",
    "UnprovenDevice",
]


class PromptTooLong(RequestError):
    """The prompt leaves no room for an answer in its context."""


class UnprovenDevice(UserWarning):
    """Warns that nobody has run ds4py on a device yet to which a model is loaded (`ds4py.runtime.backend_status`)."""
