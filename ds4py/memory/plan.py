"""Whether a model fits the devices that it is to run on, and what would: sizes in, a plan out."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ds4py import _native
from ds4py.errors import BackendError

PARTS = ("weights", "experts", "packed", "state", "scratch", "drafter")
"""What a device holds: weights, those of routed experts, copies that the CPU's kernels want, a session's state, what
graphs run in, and a drafter's weights."""
HOST_PARTS = ("state", "scratch")
"""What must be in memory on the CPU: weights are mapped and may be paged, copies are only made where there is room."""
NAMES = {"experts": "routed experts", "packed": "repacked weights"}
DEVICE_RESERVE = 256 << 20
"""Bytes of a device that a plan leaves to its driver and libraries."""
CONTEXT_STEP = 1024
DEAR_ROWS = (
    "with experts on the CPU every further row of a verify is dear: drafting may not pay, and a fixed width may lose "
    "(ds4py profile measures it)"
)


@dataclass(frozen=True)
class DeviceOptions:
    """Where a model is to run, and how long its sessions may get."""

    device: str
    split: tuple[int, ...]
    cpu_moe: int
    context: int


@dataclass(frozen=True)
class DeviceNeed:
    """What a model takes of one device, in bytes by part, and what there is."""

    device: str
    host: bool
    available: int
    parts: Mapping[str, int]

    @property
    def needed(self) -> int:
        """Bytes without which it does not run."""
        return sum(self.parts[part] for part in (HOST_PARTS if self.host else PARTS))

    @property
    def fits(self) -> bool:
        """Whether it runs."""
        return self.needed + (0 if self.host else DEVICE_RESERVE) <= self.available

    @property
    def repacks(self) -> bool:
        """Whether there is room for copies of weights, too."""
        return self.needed + self.parts["packed"] <= self.available

    def __str__(self) -> str:
        """Such as `CUDA0: needs 9.0 GiB (weights 8.0 GiB, state 1.0 GiB), has 8.5 GiB free`."""
        counted = HOST_PARTS if self.host else PARTS
        parts = [f"{NAMES.get(part, part)} {in_words(self.parts[part])}" for part in counted if self.parts[part]]
        return f"{self.device}: needs {in_words(self.needed)} ({', '.join(parts)}), has {in_words(self.available)} free"


Measure = Callable[[DeviceOptions], Sequence[DeviceNeed]]
"""What every device that computes something would hold."""


@dataclass(frozen=True)
class Plan:
    """Where a model goes, what it takes there, and what there is to say of it."""

    options: DeviceOptions
    needs: tuple[DeviceNeed, ...]
    notes: tuple[str, ...]

    @property
    def host_reserve(self) -> int:
        """Bytes of this machine's memory that copies of weights must leave."""
        return sum(need.needed for need in self.needs if need.host)


def find_plan(measure: Measure, wanted: DeviceOptions, layers: int) -> Plan:
    """What is wanted where it fits; with the device "auto" else what fits, and the plan says so.

    Raises BackendError, with the parts and what would fit, where it does not.
    """
    needs = tuple(measure(wanted))
    if _fits(needs):
        return Plan(wanted, needs, tuple(_notes(wanted, needs)))
    with_experts = _more_experts(measure, wanted, needs, layers)
    on_cpu = replace(wanted, device="cpu", split=(), cpu_moe=0)
    if wanted.device.lower() == "auto":
        for smaller in filter(None, (with_experts, on_cpu)):
            found = tuple(measure(smaller))
            if _fits(found):
                return Plan(smaller, found, (_said(needs, smaller), *_notes(smaller, found)))
    raise BackendError(_refusal(needs, _fixes(measure, wanted, with_experts, on_cpu)))


def measure_files(
    target: _native.GgufFile, drafter: _native.GgufFile | None, *, kv_dtype: str = "f16", repack: bool = True
) -> Measure:
    """What a target and its drafter, if there is one, take of each device that computes something."""

    def measure(wanted: DeviceOptions) -> Sequence[DeviceNeed]:
        found = _native.memory_by_device(
            target,
            drafter,
            context=wanted.context,
            kv_dtype=kv_dtype,
            device=wanted.device,
            split=list(wanted.split),
            cpu_moe=wanted.cpu_moe,
            repack=repack,
        )
        needs = [
            DeviceNeed(each["device"], each["host"], each["available"], {part: each[part] for part in PARTS})
            for each in found
        ]
        return [need for need in needs if any(need.parts.values())]

    return measure


def _fits(needs: Iterable[DeviceNeed]) -> bool:
    return all(need.fits for need in needs)


def _notes(wanted: DeviceOptions, needs: Sequence[DeviceNeed]) -> Iterable[str]:
    if wanted.cpu_moe and all(need.host or not need.needed for need in needs):
        yield "keeping experts on the CPU changes nothing where the CPU computes all"
    elif wanted.cpu_moe and any(need.parts["drafter"] for need in needs):
        yield DEAR_ROWS
    for need in needs:
        if need.host and not need.repacks:
            copies, left = in_words(need.parts["packed"]), in_words(need.available - need.needed)
            yield f"weights are used as they lie in the file: copies for the kernels take {copies}, {left} are left"


def _more_experts(
    measure: Measure, wanted: DeviceOptions, needs: Sequence[DeviceNeed], layers: int
) -> DeviceOptions | None:
    """With the fewest layers' experts on the CPU that make it fit."""
    if all(need.fits for need in needs if not need.host):
        return None
    found = _first(range(wanted.cpu_moe + 1, layers + 1), lambda n: _fits(measure(replace(wanted, cpu_moe=n))))
    return None if found is None else replace(wanted, cpu_moe=found)


def _shorter(measure: Measure, wanted: DeviceOptions) -> DeviceOptions | None:
    """With the longest context that fits."""
    lengths = range((wanted.context - 1) // CONTEXT_STEP * CONTEXT_STEP, 0, -CONTEXT_STEP)
    found = _first(lengths, lambda n: _fits(measure(replace(wanted, context=n))))
    return None if found is None else replace(wanted, context=found)


def _first(values: range, fits: Callable[[int], bool]) -> int | None:
    """The first that fits, where all after one that fits do, too."""
    low, high = 0, len(values)
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if fits(values[middle]) else (middle + 1, high)
    return values[low] if low < len(values) else None


def _fixes(
    measure: Measure, wanted: DeviceOptions, with_experts: DeviceOptions | None, on_cpu: DeviceOptions
) -> Iterable[str]:
    """Flags that would make it fit."""
    if with_experts:
        yield f"--n-cpu-moe {with_experts.cpu_moe}"
    if shorter := _shorter(measure, wanted):
        yield f"-c {shorter.context}"
    if wanted.device.lower() != "cpu" and _fits(measure(on_cpu)):
        yield "--device cpu"


def _refusal(needs: Sequence[DeviceNeed], fixes: Iterable[str]) -> str:
    short = "; ".join(str(need) for need in needs if not need.fits)
    would = [f"{fix} would fit" for fix in fixes]
    return f"the model does not fit: {short}; " + (", ".join(would) or "use a smaller model or quantisation")


def _said(needs: Sequence[DeviceNeed], smaller: DeviceOptions) -> str:
    short = "; ".join(str(need) for need in needs if not need.fits)
    what = (
        "the CPU computes all"
        if smaller.device == "cpu"
        else f"routed experts of {smaller.cpu_moe} layers stay on the CPU"
    )
    return f"{short}: {what}"


def in_words(size: int) -> str:
    """A size in GiB or MiB."""
    return f"{size / 2**30:.1f} GiB" if size >= 2**30 else f"{size / 2**20:.1f} MiB"


def others_with(files: Iterable[str], proc: Path = Path("/proc")) -> list[int]:
    """Other processes that have one of the files mapped, as far as this user may know. Without /proc there are none."""
    wanted = {os.path.realpath(file) for file in files}
    found = []
    for process in proc.glob("[0-9]*"):
        try:
            mapped = {line.split(maxsplit=5)[-1] for line in (process / "maps").read_text().splitlines() if "/" in line}
        except OSError:
            continue
        if int(process.name) != os.getpid() and wanted & mapped:
            found.append(int(process.name))
    return sorted(found)


def shared_memory_note(files: Sequence[str], size: int, proc: Path = Path("/proc")) -> str | None:
    """What to say where another process runs a model that takes more than a third of memory."""
    try:
        total = int((proc / "meminfo").read_text().split("MemTotal:")[1].split()[0]) * 1024
    except (OSError, IndexError, ValueError):
        return None
    if size * 3 <= total or not (others := others_with(files, proc)):
        return None
    who = ", ".join(map(str, others))
    return f"process {who} has this model loaded, too: together they may not fit into memory, and then both get slow"
