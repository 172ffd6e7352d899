"""Everything that `ds4py doctor` says, as data."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field

from ds4py import _native, data
from ds4py.doctor.build import Build, Device
from ds4py.doctor.capture import Capture, captures, compute_capability
from ds4py.doctor.findings import Finding, examine, missing_device
from ds4py.doctor.machine import Machine
from ds4py.doctor.model import Room, experts_of, room_for
from ds4py.doctor.trial import Trial, try_device
from ds4py.json_types import Json
from ds4py.runtime.backend_status import GGML, ON_HOST, OPS, BackendStatus, backend_status


@dataclass(frozen=True)
class DeviceReport:
    """One device: what it is, what computes there and how far that is proven, and what came of trying it."""

    device: Device
    backend: str
    driver: str | None
    ops: dict[str, str]
    trial: Trial | None
    capture: list[Capture] = field(default_factory=list)


@dataclass(frozen=True)
class Report:
    """The whole."""

    asked: str
    kernels: list[str]
    devices: list[DeviceReport]
    findings: list[Finding]
    room: Room | None = None

    @property
    def usable(self) -> bool:
        """Whether the device that was asked for can run, and hold the model where one was given."""
        chosen = self.chosen
        if chosen is None or (chosen.trial is not None and not chosen.trial.passed):
            return False
        return self.room is None or self.room.fits

    @property
    def chosen(self) -> DeviceReport | None:
        """The device that was asked for; of `auto` the first GPU, else the CPU."""
        return choose(self.asked, self.devices)


def report(
    asked: str = "auto",
    *,
    machine: Machine | None = None,
    build: Build | None = None,
    model: str | None = None,
    drafter: str | None = None,
    context: int | None = None,
    attempt: Callable[[str], Trial] = try_device,
) -> Report:
    """Looks at the machine and the build, and tries the devices.

    Args:
        asked: a device's name, or `auto`, which DS4_DEVICE may stand for.
        machine, build: instead of this machine and this installation.
        model, drafter, context: what shall run; the room it takes is compared with what there is.
        attempt: runs the embedded pair on a device.

    Raises FormatError or PairError for a model or drafter that cannot be read.
    """
    machine, build = machine or Machine(), build or Build.here()
    if asked == "auto":
        asked = os.environ.get("DS4_DEVICE") or asked
    experts = experts_of(model or str(data.TARGET))
    offered = [(device, backend) for backend, found in build.devices.items() for device in found]
    if asked.lower().startswith("rpc:"):
        offered.append((remote(asked), "rpc"))
    devices = [_device(device, backend, machine, build, attempt, experts) for device, backend in offered]
    findings = examine(machine, build)
    chosen = choose(asked, devices)
    if chosen is None:
        findings.append(missing_device(asked, machine, build, findings))
    room = room_for(model, drafter, context, machine, asked) if model else None
    return Report(asked, _native.cpu_kernels(), devices, findings, room)


def choose(asked: str, devices: list[DeviceReport]) -> DeviceReport | None:
    """The device of a name as people type it."""
    if asked == "auto":
        kinds = ("gpu", "igpu", "cpu")
        ordered = [each for kind in kinds for each in devices if each.device["kind"] == kind]
        return next(iter(ordered), None)
    wanted = asked.lower() if asked.lower().startswith("rpc:") else ggml_name(asked)
    return next((each for each in devices if each.device["name"].lower() == wanted), None)


def ggml_name(name: str) -> str:
    """`cuda:0`, `hip` and `metal` as ggml calls them, in lower case."""
    plain = name.lower().replace(":", "").replace("hip", "rocm").replace("metal", "mtl")
    return plain + "0" if plain in ("cuda", "rocm", "vulkan", "mtl") else plain


def remote(name: str) -> Device:
    """The device of a server, of which nothing is known before it is tried."""
    return Device(
        name=name,
        description="a server of ggml's RPC protocol",
        kind="gpu",
        id="",
        memory_free=0,
        memory_total=0,
        addresses_host_memory=False,
    )


def _device(
    device: Device,
    backend: str,
    machine: Machine,
    build: Build,
    attempt: Callable[[str], Trial],
    experts: frozenset[str],
) -> DeviceReport:
    capture = []
    if backend == "cuda":
        graphs = "USE_GRAPHS" in build.features["cuda"]
        capture = captures(set(experts), compute_capability(), built_with_graphs=graphs)
    trial = attempt(device["name"]) if device["kind"] in ("cpu", "gpu", "igpu") else None
    used = trial.ops if trial else {}
    words = {op: str(used_status(op, backend, used.get(op))) for op in OPS}
    return DeviceReport(device, backend, driver_of(backend, machine), words, trial, capture)


def used_status(op: str, backend: str, by: str | None) -> BackendStatus:
    """The table's entry, unless the kernel that it is of was not used: then that of what was used instead."""
    entry = backend_status(op, backend)
    if entry.by != "own" or backend == "cpu":
        return entry
    return {"ggml": GGML[backend], "host": ON_HOST}.get(by or "", entry)


def driver_of(backend: str, machine: Machine) -> str | None:
    """The version of a backend's driver where the system says."""
    if backend == "cuda":
        return machine.nvidia_driver
    if backend == "hip":
        return machine.text("sys/module/amdgpu/version") or machine.text("opt/rocm/.info/version")
    return None


def as_dict(found: Report) -> Json:
    """For `--json`."""
    return {
        "asked": found.asked,
        "usable": found.usable,
        "chosen": found.chosen.device["name"] if found.chosen else None,
        "cpu_kernels": found.kernels,
        "devices": [
            {
                **each.device,
                "backend": each.backend,
                "driver": each.driver,
                "ops": each.ops,
                "trial": each.trial and each.trial.as_dict(),
                "cuda_graphs": [vars(one) for one in each.capture],
            }
            for each in found.devices
        ],
        "findings": [vars(each) for each in found.findings],
        "model": found.room and found.room.as_dict(),
    }
