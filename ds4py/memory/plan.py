"""Plans which devices hold a model, from sizes alone, before anything is loaded."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from ds4py.console import size
from ds4py.errors import BackendError
from ds4py.memory.needs import DeviceNeed, DeviceOptions, Measure

CONTEXT_STEP = 1024
"""Positions between the contexts that are tried when a shorter one is looked for."""

DEAR_ROWS = (
    "with experts on the CPU every further row of a verify is dear: drafting may not pay, and a fixed width may lose "
    "(ds4py profile measures it)"
)


@dataclass(frozen=True)
class Plan:
    """The devices that a model is loaded to, and what it takes of each.

    Attributes:
        options: the devices; those that the caller asked for, or with "auto" those that fit.
        needs: what each device holds.
        notes: what a user should know about it.
    """

    options: DeviceOptions
    needs: tuple[DeviceNeed, ...]
    notes: tuple[str, ...]

    @property
    def host_reserve(self) -> int:
        """The bytes of this machine's memory that repacked copies of weights must leave free."""
        return sum(need.needed for need in self.needs if need.host)


def find_plan(measure: Measure, options: DeviceOptions, layers: int) -> Plan:
    """Returns a plan for what the caller asks for, where it fits.

    With the device "auto", a model that does not fit keeps the experts of as few layers as possible on the CPU, or runs
    on the CPU as a whole, and a note of the plan says so.

    Args:
        layers: the model's.

    Raises BackendError, with what is missing and which flags would make it fit.
    """
    needs = tuple(measure(options))
    if _fits(needs):
        return Plan(options, needs, tuple(_notes(options, needs)))
    with_experts = _more_experts(measure, options, needs, layers)
    on_cpu = replace(options, device="cpu", split=(), cpu_moe=0)
    if options.device.lower() == "auto":
        for smaller in filter(None, (with_experts, on_cpu)):
            found = tuple(measure(smaller))
            if _fits(found):
                return Plan(smaller, found, (_fallback_note(needs, smaller), *_notes(smaller, found)))
    raise BackendError(_refusal(needs, _fixes(measure, options, with_experts, on_cpu)))


def _fits(needs: Iterable[DeviceNeed]) -> bool:
    return all(need.fits for need in needs)


def _notes(options: DeviceOptions, needs: Sequence[DeviceNeed]) -> Iterable[str]:
    if options.cpu_moe and all(need.host or not need.needed for need in needs):
        yield "keeping experts on the CPU changes nothing where the CPU computes all"
    elif options.cpu_moe and any(need.parts["drafter"] for need in needs):
        yield DEAR_ROWS
    for need in needs:
        if need.host and not need.repacks:
            copies, left = size(need.parts["packed"], digits=1), size(need.available - need.needed, digits=1)
            yield f"weights are used as they lie in the file: copies for the kernels take {copies}, {left} are left"


def _more_experts(
    measure: Measure, options: DeviceOptions, needs: Sequence[DeviceNeed], layers: int
) -> DeviceOptions | None:
    """The options with experts of as few layers on the CPU as make it fit; None where that does not help."""
    if all(need.fits for need in needs if not need.host):
        return None
    found = _first(range(options.cpu_moe + 1, layers + 1), lambda n: _fits(measure(replace(options, cpu_moe=n))))
    return None if found is None else replace(options, cpu_moe=found)


def _shorter(measure: Measure, options: DeviceOptions) -> DeviceOptions | None:
    """The options with the longest context that fits, in steps of CONTEXT_STEP; None where none fits."""
    lengths = range((options.context - 1) // CONTEXT_STEP * CONTEXT_STEP, 0, -CONTEXT_STEP)
    found = _first(lengths, lambda n: _fits(measure(replace(options, context=n))))
    return None if found is None else replace(options, context=found)


def _first(values: range, fits: Callable[[int], bool]) -> int | None:
    """The first value that fits, by bisection; None where none does. All values after one that fits have to fit."""
    low, high = 0, len(values)
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if fits(values[middle]) else (middle + 1, high)
    return values[low] if low < len(values) else None


def _fixes(
    measure: Measure, options: DeviceOptions, with_experts: DeviceOptions | None, on_cpu: DeviceOptions
) -> Iterable[str]:
    """The flags of the command line that would each make it fit."""
    if with_experts:
        yield f"--n-cpu-moe {with_experts.cpu_moe}"
    if shorter := _shorter(measure, options):
        yield f"-c {shorter.context}"
    if options.device.lower() != "cpu" and _fits(measure(on_cpu)):
        yield "--device cpu"


def _refusal(needs: Sequence[DeviceNeed], fixes: Iterable[str]) -> str:
    short = "; ".join(str(need) for need in needs if not need.fits)
    would = [f"{fix} would fit" for fix in fixes]
    return f"the model does not fit: {short}; " + (", ".join(would) or "use a smaller model or quantisation")


def _fallback_note(needs: Sequence[DeviceNeed], smaller: DeviceOptions) -> str:
    short = "; ".join(str(need) for need in needs if not need.fits)
    what = (
        "the CPU computes all"
        if smaller.device == "cpu"
        else f"routed experts of {smaller.cpu_moe} layers stay on the CPU"
    )
    return f"{short}: {what}"
