"""Checks whether a model fits the memory of a device."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ds4py import _native
from ds4py.constants import DEFAULT_CONTEXT
from ds4py.doctor.machine import Machine
from ds4py.errors import BackendError, RequestError
from ds4py.json_types import Json
from ds4py.memory import DeviceNeed, DeviceOptions, find_plan, measure_files


@dataclass(frozen=True)
class ModelFit:
    """The memory that a model needs and finds on each device at a context."""

    context: int
    needs: tuple[DeviceNeed, ...]
    notes: tuple[str, ...]
    """The notes of the memory plan. If the model does not fit, they say why and what would fit."""
    fits: bool

    def as_dict(self) -> Json:
        """Returns the values for `--json`. Sizes are in bytes."""
        devices = [
            {"device": need.device, "available": need.available, "needed": need.needed, **need.parts}
            for need in self.needs
        ]
        return {"context": self.context, "fits": self.fits, "said": self.notes, "devices": devices}


def check_fit(model: str, drafter: str | None, context: int | None, machine: Machine, device: str) -> ModelFit | None:
    """Compares the memory that a target and its drafter need with what a machine has on the named device.

    Returns None if the device does not exist. Raises FormatError or PairError for files that are not such models.
    """
    target = _native.GgufFile.open(model)
    hyperparameters = _native.read_hyperparameters(target)
    pair = _native.GgufFile.open(drafter) if drafter else None
    if pair is not None:
        _native.read_drafter(pair, hyperparameters)
    positions = context or min(DEFAULT_CONTEXT, hyperparameters.context)
    measure_here = measure_files(target, pair)

    def measure(options: DeviceOptions) -> Sequence[DeviceNeed]:
        left = machine.memory_available
        return [
            replace(need, available=min(need.available, left)) if need.host else need for need in measure_here(options)
        ]

    options = DeviceOptions(device, (), 0, positions)
    try:
        plan = find_plan(measure, options, hyperparameters.layers)
    except BackendError as error:
        return ModelFit(positions, tuple(measure(options)), (str(error),), False)
    except RequestError:
        return None
    return ModelFit(positions, plan.needs, plan.notes, True)


def experts_of(model: str) -> frozenset[str]:
    """Returns the types of a target's routed experts."""
    tensors = _native.GgufFile.open(model).tensors()
    return frozenset(each.type for each in tensors if "_exps." in each.name)
