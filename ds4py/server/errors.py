"""Refusals and failures, in the form that each API's clients expect."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from typing import Final

from starlette.exceptions import HTTPException

from ds4py.errors import BackendError, Cancelled, PromptTooLong, RequestError
from ds4py.json_types import Json

log = logging.getLogger(__name__)

ANTHROPIC_PATH: Final = "/v1/messages"

STATUS_TYPES: Final = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    503: "overloaded_error",
}
"""Anthropic's error type for each HTTP status. OpenAI's clients look only at the status."""

FIELD: Final = re.compile(r"([a-z_]+(?:\[\d+\]|\.[a-z_]+)*): ")


class ApiError(HTTPException):
    """A request that is answered with an error.

    Attributes:
        status_code: of HTTP.
        detail: the message.
        param: the field that it is about, such as `messages[2].content`; None for none.
        code: OpenAI's name of the reason, where there is one.
    """

    def __init__(
        self,
        status: int,
        message: str,
        *,
        param: str | None = None,
        code: str | None = None,
        retry_after: int = 0,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        more = {"Retry-After": str(retry_after)} if retry_after else {}
        super().__init__(status, message, {**(headers or {}), **more} or None)
        self.param = param
        self.code = code

    @property
    def type(self) -> str:
        """The error type that belongs to the status, as in STATUS_TYPES."""
        return STATUS_TYPES.get(self.status_code, "invalid_request_error" if self.status_code < 500 else "api_error")


def refused(param: str, message: str, code: str | None = None) -> ApiError:
    """Returns an error about the field `param`, with status 400."""
    return ApiError(400, f"{param}: {message}", param=param, code=code)


def api_error(error: BaseException) -> ApiError:
    """Returns the error to answer with for any exception. A bug is logged and not described to the client."""
    if isinstance(error, ApiError):
        return error
    if isinstance(error, HTTPException):
        return ApiError(error.status_code, str(error.detail))
    if isinstance(error, RequestError):
        code = "context_length_exceeded" if isinstance(error, PromptTooLong) else None
        return ApiError(400, str(error), param=field_named(str(error)), code=code)
    if isinstance(error, Cancelled):
        return ApiError(503, "the server is stopping", retry_after=10)
    if isinstance(error, (BackendError, MemoryError)):
        log.error("no room or a failing device: %s", error)
        return ApiError(503, str(error) or "out of memory", retry_after=10)
    log.error("an error nobody expected", exc_info=error)
    return ApiError(500, "an error nobody expected; the server's log has it")


def field_named(message: str) -> str | None:
    """Returns the field that an engine's message begins with, such as `messages[2]`, or None."""
    found = FIELD.match(message)
    return found[1] if found else None


def openai_body(error: ApiError) -> Json:
    """Returns the error as OpenAI's API writes it."""
    return {"error": {"message": error.detail, "type": error.type, "param": error.param, "code": error.code}}


def anthropic_body(error: ApiError) -> Json:
    """Returns the error as Anthropic's API writes it. The message begins with the field, if the error has one."""
    return {"type": "error", "error": {"type": error.type, "message": error.detail}}


def body_for(path: str, error: ApiError) -> Json:
    """Returns the error in the form of the API that `path` belongs to."""
    return anthropic_body(error) if path.startswith(ANTHROPIC_PATH) else openai_body(error)
