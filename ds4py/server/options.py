"""The options of the server."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

KIB, MIB = 1 << 10, 1 << 20


@dataclass(frozen=True)
class ServerOptions:
    """Options of the server: its address, its limits on requests, and how it generates."""

    host: str = "127.0.0.1"
    """Address to listen on; the default takes requests of this machine only."""
    port: int = 8080
    """Port to listen on; 0 takes a free one."""
    aliases: tuple[str, ...] = ()
    """Names that requests may give the model, the one to report first; () is the name in its file."""
    api_key: str | None = None
    """What requests have to bring, as a bearer token or as x-api-key; None asks for nothing."""
    cors_origins: tuple[str, ...] = ()
    """Origins whose pages a browser lets talk to the server; () is none, "*" all."""
    max_request_bytes: int = 16 * MIB
    """The largest body of a request."""
    parallel: int = 2
    """How many answers are computed at once."""
    queue: int = 64
    """How many requests may wait for their turn."""
    sending_seconds: float = 60.0
    """How long a client may take for a request's body, and for what comes before it twice that at most."""
    stalled_seconds: float = 30.0
    """How long a client may take nothing of a stream before its answer is cancelled."""
    drafting: Mapping[str, Any] = field(default_factory=dict)
    """How answers are drafted: arguments of `Session.generate`."""
