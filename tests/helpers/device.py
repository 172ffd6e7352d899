"""The device that the models of the tests are on: the CPU, or the one that DS4_TEST_DEVICE names.

`rpc` is a server of its own at a free port of this machine: a device whose memory cannot be addressed, without a GPU.
"""

from __future__ import annotations

import os

import pytest
from paths import GOLDEN
from rpc_server import start_server

import ds4py

DEVICE = os.environ.get("DS4_TEST_DEVICE", "cpu")
if DEVICE == "rpc":
    _server, DEVICE = start_server()  # ends with this process, after the last model on it is gone

own_kernels = pytest.mark.skipif(
    DEVICE != "cpu", reason="a row's bits do not depend on the rows beside it in the CPU's own kernels only"
)

ROUNDING = 1.0 if DEVICE == "cpu" or DEVICE.startswith("rpc:") else 200.0
"""What bounds of F32 files are multiplied by: GPUs multiply with the ten bits of TF32 or F16 and not with 23."""


def open_engine(name: str, threads: int = 1) -> ds4py.Engine:
    """Opens an engine on a golden file."""
    return ds4py.Engine(GOLDEN / name, device=DEVICE, threads=threads)
