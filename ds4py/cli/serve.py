"""Defines `ds4py serve`, the HTTP server with the APIs of OpenAI and Anthropic."""

import argparse
import logging
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ds4py.cli.model import note, open_engine, require_file
from ds4py.cli.options import add_command, add_drafting_flags, add_engine_flags, add_model_flag, drafting_arguments
from ds4py.cli.speculation import note_draft_length
from ds4py.console import exits, number

if TYPE_CHECKING:
    from ds4py import Engine
    from ds4py.server import ServerOptions

DESCRIPTION = """\
Serves one model over HTTP: /v1/chat/completions, /v1/completions and /v1/responses as OpenAI's clients expect them,
/v1/messages as Anthropic's do, /v1/models, /health and /metrics. It listens at once, and answers with 503 until the
model is loaded. Ctrl-C cancels the running answers and ends the server. It needs the extra
`server`: pip install 'ds4py[server]'."""

KEY_VARIABLE = "DS4PY_API_KEY"
SESSIONS = 4
CACHE_GIB = 16.0


def add_parser(commands: "argparse._SubParsersAction[Any]") -> None:
    """Adds the command and its flags."""
    parser = add_command(commands, "serve", run, help="answer HTTP requests", description=DESCRIPTION)
    add_model_flag(parser)
    add_address_flags(parser)
    add_limit_flags(parser)
    add_drafting_flags(parser)
    add_engine_flags(parser, context_help="positions that each session can hold (default: chosen by the engine)")
    parser.add_argument("-q", "--quiet", action="store_true", help="no messages, only errors")


def add_address_flags(parser: argparse.ArgumentParser) -> None:
    """Adds the flags of the address and of access."""
    group = parser.add_argument_group("address")
    group.add_argument("--host", default="127.0.0.1", help="address to listen on (default: this machine only)")
    group.add_argument("--port", type=number(int, 0, 65535), default=8080, metavar="N", help="default: 8080; 0: any")
    group.add_argument(
        "--api-key",
        type=key,
        metavar="KEY",
        help=f"key that requests must have (default: ${KEY_VARIABLE}; without it, none)",
    )
    group.add_argument(
        "--alias",
        action="append",
        default=[],
        metavar="NAME",
        help="the model's name in requests (may be repeated; default: the name in its file)",
    )
    group.add_argument(
        "--cors-origin",
        action="append",
        default=[],
        metavar="URL",
        help="let pages of this origin use the server from a browser (may be repeated; *: all; default: none)",
    )


def key(text: str) -> str:
    """Parses `--api-key`.

    Raises ArgumentTypeError for an empty key, which may come from an unset shell variable and would let everybody in.
    """
    if not text:
        raise argparse.ArgumentTypeError("the key is empty; leave the flag out where no key is wanted")
    return text


def add_limit_flags(parser: argparse.ArgumentParser) -> None:
    """Adds the flags that bound work and memory."""
    group = parser.add_argument_group("limits")

    def add(flag: str, low: int, default: int, text: str) -> None:
        group.add_argument(
            flag, type=number(int, low), default=default, metavar="N", help=f"{text} (default: {default})"
        )

    add("--parallel", 1, 2, "answers that are computed at once")
    add("--queue", 0, 64, "requests that may wait; more get status 429")
    add("--max-request-bytes", 1, 16 << 20, "the largest body of a request")
    group.add_argument(
        "--sessions",
        type=number(int, 1),
        metavar="N",
        help=f"conversations whose state is kept in memory (default: {SESSIONS}, and at least as many as --parallel)",
    )
    group.add_argument(
        "--cache-dir", metavar="DIR", help="keep the state of further conversations on disk (default: nowhere)"
    )
    group.add_argument(
        "--cache-size",
        type=number(float, 0),
        default=CACHE_GIB,
        metavar="GIB",
        help=f"most GiB in --cache-dir; the least recently used state is removed (default: {CACHE_GIB})",
    )


def run(args: argparse.Namespace) -> int:
    """Serves until it is stopped, and returns the exit code."""
    serve = require_server()
    logging.basicConfig(
        level=logging.WARNING if args.quiet else logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s"
    )
    logging.getLogger("uvicorn").setLevel(logging.WARNING)
    logging.getLogger("asyncio").setLevel(logging.ERROR)  # it would warn of clients that hang up during an answer
    sessions = args.sessions or max(SESSIONS, args.parallel)
    if sessions < args.parallel:
        raise exits.UsageError(f"--sessions {sessions} is less than --parallel {args.parallel}")

    check_paths(args)

    def load(progress: Callable[[float], None]) -> "Engine":
        from ds4py.prefix_cache import SessionPool

        engine = open_engine(args, args.model, args.drafter, progress)
        note_draft_length(args, engine)
        engine.pool = SessionPool(
            engine,
            sessions=sessions,
            context=args.context,
            kv_dtype=args.kv_dtype,
            cache_dir=args.cache_dir,
            cache_bytes=int(args.cache_size * (1 << 30)),
        )
        return engine

    serve(options(args), load, lambda text: note(args, text))
    return exits.OK


def check_paths(args: argparse.Namespace) -> None:
    """Raises OSError or RequestError for paths that cannot be read or written, before the server listens."""
    from ds4py.prefix_cache import prepared_folder

    for file in (args.model, args.drafter):
        if file is not None:
            require_file(file)
    if args.cache_dir is not None:
        prepared_folder(args.cache_dir)


def require_server() -> "Callable[..., None]":
    """Returns the function that serves. Raises UsageError if the extra `server` is not installed."""
    try:
        from ds4py.server.run import serve
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("ds4py"):
            raise
        raise exits.UsageError(f"serve needs {error.name}: pip install 'ds4py[server]'") from None
    return serve


def options(args: argparse.Namespace) -> "ServerOptions":
    """Builds the options of the server from the flags."""
    from ds4py.server import ServerOptions

    return ServerOptions(
        host=args.host,
        port=args.port,
        aliases=tuple(args.alias),
        api_key=args.api_key or os.environ.get(KEY_VARIABLE) or None,
        cors_origins=tuple(args.cors_origin),
        max_request_bytes=args.max_request_bytes,
        parallel=args.parallel,
        queue=args.queue,
        drafting=drafting_arguments(args),
    )
