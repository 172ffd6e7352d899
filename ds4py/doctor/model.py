"""Whether a model fits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from ds4py import _native
from ds4py.doctor.machine import Machine
from ds4py.errors import BackendError, RequestError
from ds4py.memory.plan import DeviceNeed, DeviceOptions, find_plan, measure_files

DEFAULT_CONTEXT = _native.DEFAULT_CONTEXT


@dataclass(frozen=True)
class Room:
    """What a model takes of each device at a context, what there is, and what follows from it."""

    context: int
    needs: tuple[DeviceNeed, ...]
    said: tuple[str, ...]
    """Notes of a plan, or why there is none and what would fit."""
    fits: bool

    def as_dict(self) -> dict[str, Any]:
        """For `--json`; bytes."""
        devices = [
            {"device": need.device, "available": need.available, "needed": need.needed, **need.parts}
            for need in self.needs
        ]
        return {"context": self.context, "fits": self.fits, "said": self.said, "devices": devices}


def room_for(model: str, drafter: str | None, context: int | None, machine: Machine, device: str) -> Room | None:
    """Of a target, and a drafter where one is given, on a device by its name; None where that is not here.

    Raises FormatError or PairError for files that are no such models.
    """
    target = _native.GgufFile.open(model)
    hyperparameters = _native.read_hyperparameters(target)
    pair = _native.GgufFile.open(drafter) if drafter else None
    if pair is not None:
        _native.read_drafter(pair, hyperparameters)
    positions = context or min(DEFAULT_CONTEXT, hyperparameters.context)
    measure_here = measure_files(target, pair)

    def measure(wanted: DeviceOptions) -> Sequence[DeviceNeed]:
        left = machine.memory_available
        return [
            replace(need, available=min(need.available, left)) if need.host else need for need in measure_here(wanted)
        ]

    wanted = DeviceOptions(device, (), 0, positions)
    try:
        plan = find_plan(measure, wanted, hyperparameters.layers)
    except BackendError as error:
        return Room(positions, tuple(measure(wanted)), (str(error),), False)
    except RequestError:
        return None
    return Room(positions, plan.needs, plan.notes, True)


def experts_of(model: str) -> frozenset[str]:
    """The types of a target's routed experts."""
    tensors = _native.GgufFile.open(model).tensors()
    return frozenset(each.type for each in tensors if "_exps." in each.name)
