"""The memory that a model needs on each device, and the memory that is free there."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from ds4py.console import size

PARTS = ("weights", "experts", "packed", "state", "scratch", "drafter")
"""What a device holds: weights without routed experts, routed experts, repacked copies of weights for the CPU's
kernels, a session's state, the memory in which graphs run, and a drafter's weights."""

HOST_PARTS = ("state", "scratch")
"""What must be in memory on the CPU: weights are mapped from the file and may be paged out, and repacked copies are
made only where there is room."""

NAMES = {"experts": "routed experts", "packed": "repacked weights"}
"""Names of parts in messages, where the part's own name does not say it."""

DEVICE_RESERVE = 256 << 20
"""Bytes of a device that a plan leaves to its driver and libraries."""


@dataclass(frozen=True)
class DeviceOptions:
    """The devices of a model and the length of its sessions, as a caller asks for them.

    Attributes:
        device: names of devices, with commas between them, or "auto".
        split: layers of each device, in order; empty for equal parts.
        cpu_moe: the number of first layers whose routed experts stay on the CPU.
        context: positions of a session.
    """

    device: str
    split: tuple[int, ...]
    cpu_moe: int
    context: int


@dataclass(frozen=True)
class DeviceNeed:
    """The memory that a model needs on one device, and the memory that is free there, in bytes.

    Attributes:
        device: ggml's name of it.
        host: whether it is this machine's CPU.
        available: free bytes.
        parts: bytes by the names in PARTS.
    """

    device: str
    host: bool
    available: int
    parts: Mapping[str, int]

    @property
    def needed(self) -> int:
        """The bytes without which the model does not run there."""
        return sum(self.parts[part] for part in (HOST_PARTS if self.host else PARTS))

    @property
    def fits(self) -> bool:
        """Whether the device has the bytes that the model needs."""
        return self.needed + (0 if self.host else DEVICE_RESERVE) <= self.available

    @property
    def repacks(self) -> bool:
        """Whether there is room for repacked copies of the weights, too."""
        return self.needed + self.parts["packed"] <= self.available

    def __str__(self) -> str:
        """The need in words, such as `CUDA0: needs 9.0 GiB (weights 8.0 GiB, state 1.0 GiB), has 8.5 GiB free`."""
        counted = HOST_PARTS if self.host else PARTS
        parts = [f"{NAMES.get(part, part)} {size(self.parts[part], digits=1)}" for part in counted if self.parts[part]]
        needed, free = size(self.needed, digits=1), size(self.available, digits=1)
        return f"{self.device}: needs {needed} ({', '.join(parts)}), has {free} free"


Measure = Callable[[DeviceOptions], Sequence[DeviceNeed]]
"""Returns what every device that computes something would hold."""
