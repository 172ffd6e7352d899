"""How far each backend has been proven: the one table, from which docs/backends.md's is made.

A level says what has happened, not what is hoped: code that compiles has not run, and what ran in an emulator has not
run on hardware. Where a backend has a kernel of ours for an op, that is what the op's entry is of; else the op is
composed of ggml's.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from enum import IntEnum


class Level(IntEnum):
    """What has happened to a piece of code; each level includes those below."""

    WRITTEN = 0
    COMPILED = 1
    EMULATED = 2
    RUN = 3

    def __str__(self) -> str:
        return ("written", "compiled", "emulated", "run on hardware")[self]


@dataclass(frozen=True)
class BackendStatus:
    """Whose code computes something, its level, and what gave it: on or with what, and when."""

    by: str
    level: Level
    where: str = ""
    when: str = ""

    def __str__(self) -> str:
        """Such as `own: run on hardware (x86-64 with AVX2, 2026-11)`."""
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
"""The CPU's own kernels, by their name in `_native.cpu_kernels()`."""

GGML = {
    "cpu": BackendStatus("ggml", Level.RUN, "x86-64", "2026-11"),
    "rpc": BackendStatus("ggml", Level.RUN, "a CPU over loopback, in CI", "2026-11"),
    "cuda": BackendStatus("ggml", Level.WRITTEN),
    "hip": BackendStatus("ggml", Level.WRITTEN),
    "metal": BackendStatus("ggml", Level.WRITTEN),
    "vulkan": BackendStatus("ggml", Level.EMULATED, "lavapipe of Mesa 22.3", "2026-11"),
}
"""The whole model as a composition of ggml's ops, by backend."""

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
"""Where an op is not composed of ggml's, by op and backend."""


def backend_status(op: str, backend: str) -> BackendStatus:
    """What computes an op on a backend, and how far that has been proven."""
    return OWN.get(op, {}).get(backend, GGML[backend])


def backend_of(device: str) -> str:
    """The backend of a device by ggml's name for it: CUDA0, ROCm0, MTL0, Vulkan0, RPC0, CPU."""
    name = device.lower()
    for begin, backend in (("cuda", "cuda"), ("rocm", "hip"), ("mtl", "metal"), ("metal", "metal")):
        if name.startswith(begin):
            return backend
    return next((each for each in ("vulkan", "rpc") if name.startswith(each)), "cpu")


def unproven_note(device: str, cpu_kernels: str) -> str | None:
    """What to say when a model is loaded to a device on which nobody has run this program; None where somebody has.

    `DS4_TRUST` names backends, or `all`, of which it is not said.
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
