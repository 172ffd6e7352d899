"""Runs one process with one thread on each core, because threads do not speed up small matmuls."""

from __future__ import annotations

import ctypes.util
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
import torch.multiprocessing as multiprocessing
from torch import Tensor

JEMALLOC = "dirty_decay_ms:-1,muzzy_decay_ms:-1,thp:always,metadata_thp:auto,oversize_threshold:0"
"""The allocator that keeps freed pages. A step frees and takes the same megabytes thousands of times."""


def run(function: Callable[..., None], workers: int, *arguments: Any) -> None:
    """Runs `function(rank, *arguments)` in each of `workers` processes. The first failure ends all."""
    preload = ctypes.util.find_library("jemalloc")
    if preload:
        os.environ["LD_PRELOAD"], os.environ["MALLOC_CONF"] = preload, JEMALLOC
    os.environ["OMP_NUM_THREADS"] = "1"
    try:
        multiprocessing.spawn(entry, (function, workers, arguments), workers)
    finally:
        os.environ.pop("LD_PRELOAD", None)


def entry(rank: int, function: Callable[..., None], workers: int, arguments: Sequence[Any]) -> None:
    """Starts the work of one process."""
    torch.set_num_threads(1)
    meeting = Path(os.environ.get("TMPDIR", "/tmp")) / f"ds4py-tiny-{os.getppid()}"
    dist.init_process_group("gloo", init_method=f"file://{meeting}", rank=rank, world_size=workers)
    try:
        function(rank, *arguments)
    finally:
        dist.destroy_process_group()
        meeting.unlink(missing_ok=True)


def average(tensors: Sequence[Tensor]) -> None:
    """Replaces each tensor by its mean over all processes."""
    if dist.get_world_size() == 1:
        return
    flat = torch.cat([tensor.reshape(-1) for tensor in tensors])
    dist.all_reduce(flat)
    flat /= dist.get_world_size()
    for tensor, part in zip(tensors, flat.split([tensor.numel() for tensor in tensors]), strict=True):
        tensor.copy_(part.view_as(tensor))


def is_first() -> bool:
    """Tells whether this process reports and writes files."""
    return dist.get_rank() == 0
