"""Whether a model fits."""

from __future__ import annotations

from dataclasses import dataclass

from ds4py import _native
from ds4py.doctor.build import Device
from ds4py.doctor.machine import Machine

DEFAULT_CONTEXT = 8192


@dataclass(frozen=True)
class Room:
    """Bytes that a model takes at a context, by what takes them, and what there is."""

    place: str
    needed: dict[str, int]
    available: int
    context: int

    @property
    def fits(self) -> bool:
        """Whether it does."""
        return sum(self.needed.values()) <= self.available


def room_for(model: str, drafter: str | None, context: int | None, machine: Machine, device: Device | None) -> Room:
    """Of a target, and a drafter where one is given, on a device; without one, in this machine's memory."""
    file = _native.GgufFile.open(model)
    hyperparameters = _native.read_hyperparameters(file)
    positions = context or min(DEFAULT_CONTEXT, hyperparameters.context)
    needed = dict(_native.memory_needed(file, positions))
    if drafter:
        needed["drafter"] = _drafter_bytes(drafter, hyperparameters)
    on_host = device is None or device["kind"] == "cpu" or device["memory_total"] == 0
    place = "memory" if on_host or device is None else device["name"]
    available = machine.memory_available if on_host or device is None else device["memory_free"]
    return Room(place, needed, available, positions)


def _drafter_bytes(path: str, hyperparameters: _native.Hyperparameters) -> int:
    """Of its tensors. Raises PairError when it is not the target's."""
    file = _native.GgufFile.open(path)
    _native.read_drafter(file, hyperparameters)
    return int(file.file_bytes)


def experts_of(model: str) -> frozenset[str]:
    """The types of a target's routed experts."""
    tensors = _native.GgufFile.open(model).tensors()
    return frozenset(each.type for each in tensors if "_exps." in each.name)
