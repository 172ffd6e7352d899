"""The status of each backend: who has compiled, emulated or run its code. docs/backends.md has this table.

A level says what has happened, not what is hoped: code that compiles has not run, and what ran in an emulator has not
run on hardware. Where a backend has a kernel of ours for an op, that is what the op's entry is of; else the op is
composed of ggml's.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from enum import IntEnum


class Level(IntEnum):
    """Levels to which code has been tested; each level includes those below it."""

    WRITTEN = 0
    COMPILED = 1
    EMULATED = 2
    RUN = 3

    def __str__(self) -> str:
        return ("written", "compiled", "emulated", "run on hardware")[self]


@dataclass(frozen=True)
class BackendStatus:
    """The implementation of an op on a backend, and how far it has been tested.

    Attributes:
        by: "own" for kernels of ds4py, "ggml" for ggml's ops, "host" for the CPU beside a device.
        level: what has happened to the code.
        where: the hardware or the tool that the level was reached with.
        when: year and month.
    """

    by: str
    level: Level
    where: str = ""
    when: str = ""

    def __str__(self) -> str:
        """The status in words, such as `own: run on hardware (x86-64 with AVX2, 2026-11)`."""
        details = ", ".join(each for each in (self.where, self.when) if each)
        return f"{self.by}: {self.level}" + (f" ({details})" if details else "")


BACKENDS = ("cpu", "rpc", "cuda", "hip", "metal", "vulkan")

OPS = (
    "products",
    "experts",
    "attention",
    "compressor",
    "indexer",
    "hyper-connections",
    "norms, routes",
    "RoPE, copies, look-ups",
    "draft attention",
    "Markov head",
    "acceptance",
)

CPU_KERNELS = {
    "avx512": BackendStatus("own", Level.EMULATED, "SIMDe", "2026-11"),
    "avx2vnni": BackendStatus("own", Level.EMULATED, "SIMDe", "2026-11"),
    "avx2": BackendStatus("own", Level.RUN, "x86-64 with AVX2", "2026-11"),
    "neon": BackendStatus("own", Level.EMULATED, "arm64 in qemu", "2026-11"),
    "portable": BackendStatus("own", Level.RUN, "x86-64", "2026-11"),
}
"""The status of ds4py's kernels for the CPU, by their name in `_native.cpu_kernels()`."""

GGML = {
    "cpu": BackendStatus("ggml", Level.RUN, "x86-64", "2026-11"),
    "rpc": BackendStatus("ggml", Level.RUN, "a CPU over loopback, in CI", "2026-11"),
    "cuda": BackendStatus("ggml", Level.WRITTEN),
    "hip": BackendStatus("ggml", Level.WRITTEN),
    "metal": BackendStatus("ggml", Level.WRITTEN),
    "vulkan": BackendStatus("ggml", Level.EMULATED, "lavapipe of Mesa 22.3", "2026-11"),
}
"""The status of the whole model composed of ggml's ops, by backend."""

_CPU_OPS = OPS[:7]
ON_HOST = BackendStatus("host", Level.RUN, "x86-64", "2026-11")

_EMULATED = {
    "cuda": BackendStatus("own", Level.EMULATED, "compiled for sm_80, 90, 120, 121", "2026-11"),
    "hip": BackendStatus("own", Level.EMULATED, "waves of 32 and 64, compiled for gfx1100, 1151, 942", "2026-11"),
    "metal": BackendStatus("own", Level.EMULATED, "not compiled by Metal's compiler", "2026-11"),
}

OWN: dict[str, dict[str, BackendStatus]] = {
    **{op: {"cpu": CPU_KERNELS["avx2"]} for op in _CPU_OPS},
    "draft attention": {"cpu": CPU_KERNELS["avx2"], **_EMULATED},
    "Markov head": {"cpu": CPU_KERNELS["avx2"], **_EMULATED},
    "acceptance": {**{backend: ON_HOST for backend in BACKENDS}, **_EMULATED},
}
"""The status of ops that are not composed of ggml's ops, by op and backend."""


def backend_status(op: str, backend: str) -> BackendStatus:
    """Returns the status of an op on a backend. Raises KeyError for a backend that does not exist."""
    return OWN.get(op, {}).get(backend, GGML[backend])


def backend_of(device: str) -> str:
    """Returns the backend of a device by ggml's name for it: CUDA0, ROCm0, MTL0, Vulkan0, RPC0 or CPU."""
    name = device.lower()
    for begin, backend in (("cuda", "cuda"), ("rocm", "hip"), ("mtl", "metal"), ("metal", "metal")):
        if name.startswith(begin):
            return backend
    return next((each for each in ("vulkan", "rpc") if name.startswith(each)), "cpu")


def unproven_note(device: str, cpu_kernels: str) -> str | None:
    """Returns the warning for a model on a device on which nobody has run ds4py; None where somebody has.

    Backends that the environment variable DS4_TRUST names, or all with `all`, get no warning.
    """
    backend = backend_of(device)
    found = CPU_KERNELS[cpu_kernels] if backend == "cpu" else GGML[backend]
    trusted = os.environ.get("DS4_TRUST", "").replace(" ", "").lower().split(",")
    if found.level == Level.RUN or "all" in trusted or backend in trusted:
        return None
    what = f"the CPU's {cpu_kernels} kernels" if backend == "cpu" else f"{backend} hardware"
    details = f" with {found.where}" if found.where else ""
    return (
        f"ds4py has not been run on {what} yet (level: {found.level}{details}); 'ds4py doctor --device {device}' "
        f"compares it with a reference, DS4_TRUST={backend} is the end of this note"
    )
