"""The error family: everything ds4py raises on purpose is a `ds4py.Error`.

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
    """A prompt that leaves no room for an answer in its context."""


class UnprovenDevice(UserWarning):
    """A model was loaded to a device on which nobody has run this program yet; see `ds4py.runtime.backend_status`."""
