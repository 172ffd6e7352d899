"""Defines `ds4py rpc-server`, which lends a device of this machine to other processes and machines."""

import argparse
import ipaddress
import signal
from typing import Any

from ds4py.cli.model import note
from ds4py.cli.options import add_command
from ds4py.console import exits, number

DESCRIPTION = """\
Serves a device of this machine by ggml's RPC protocol. Clients use it with --device rpc:HOST:PORT. It serves one
process at a time, and later ones wait. Ctrl-C ends it.

The protocol is neither encrypted nor authenticated: everybody who reaches the port can read and write the device's
memory. Keep it on this machine, which is the default, or inside a network that you trust, such as an SSH tunnel."""


def add_parser(commands: "argparse._SubParsersAction[Any]") -> None:
    """Adds the command and its flags."""
    parser = add_command(commands, "rpc-server", run, help="serve a device to another machine", description=DESCRIPTION)
    parser.add_argument("-H", "--host", default="127.0.0.1", help="the address to listen at (default: 127.0.0.1)")
    parser.add_argument("-p", "--port", type=number(int, 1, 65535), default=50052, metavar="N", help="default: 50052")
    parser.add_argument("-d", "--device", default="auto", help="the device to serve: auto, cpu, or a device's name")
    parser.add_argument(
        "-t", "--threads", type=number(int, 1), metavar="N", help="CPU threads (default: the cores of this process)"
    )
    parser.add_argument("-q", "--quiet", action="store_true", help="no messages, only errors")


def run(args: argparse.Namespace) -> int:
    """Serves until it is stopped. Raises BackendError if the address cannot be used."""
    from ds4py import _native

    if not is_loopback(args.host):
        note(args, f"WARNING: whoever reaches {args.host}:{args.port} can use this device and read what is on it")
    note(args, f"serving {args.device}; elsewhere: --device rpc:{args.host}:{args.port}")
    before = signal.signal(signal.SIGINT, signal.SIG_DFL)  # native code serves and never runs Python's handler
    try:
        _native.serve_rpc(f"{args.host}:{args.port}", args.device, args.threads or _native.default_threads())
    finally:
        signal.signal(signal.SIGINT, before)
    return exits.OK


def is_loopback(host: str) -> bool:
    """Tells whether only this machine can reach an address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
