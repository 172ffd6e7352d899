"""Gathers everything that `ds4py doctor` reports, as data."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field

from ds4py import _native, data
from ds4py.doctor.build import Build, Device
from ds4py.doctor.cuda_graphs import GraphCapture, compute_capability, predict_captures
from ds4py.doctor.device_check import DeviceCheck, check_device
from ds4py.doctor.findings import Finding, find_problems, missing_device
from ds4py.doctor.machine import Machine
from ds4py.doctor.model_fit import ModelFit, check_fit, experts_of
from ds4py.json_types import Json
from ds4py.runtime.backend_status import GGML, ON_HOST, OPS, BackendStatus, backend_status


@dataclass(frozen=True)
class DeviceReport:
    """The report on one device: what it is, the backend status of each op, and the result of its check."""

    device: Device
    backend: str
    driver: str | None
    ops: dict[str, str]
    check: DeviceCheck | None
    cuda_graphs: list[GraphCapture] = field(default_factory=list)


@dataclass(frozen=True)
class DoctorReport:
    """The report on a machine, its devices and a model."""

    requested: str
    kernels: list[str]
    devices: list[DeviceReport]
    findings: list[Finding]
    model_fit: ModelFit | None = None

    @property
    def usable(self) -> bool:
        """Whether the requested device can run, and holds the model if one is given."""
        chosen = self.chosen
        if chosen is None or (chosen.check is not None and not chosen.check.passed):
            return False
        return self.model_fit is None or self.model_fit.fits

    @property
    def chosen(self) -> DeviceReport | None:
        """The requested device. For `auto` it is the first GPU, or else the CPU."""
        return choose_device(self.requested, self.devices)


def report(
    requested: str = "auto",
    *,
    machine: Machine | None = None,
    build: Build | None = None,
    model: str | None = None,
    drafter: str | None = None,
    context: int | None = None,
    check: Callable[[str], DeviceCheck] = check_device,
) -> DoctorReport:
    """Examines the machine and the build, and checks the devices.

    Args:
        requested: the name of a device, or `auto`, for which DS4_DEVICE may name one.
        machine, build: a machine and a build to examine instead of these.
        model, drafter, context: a model whose memory is compared with what the devices have.
        check: runs the embedded pair on the device of a name.

    Raises FormatError or PairError for a model or drafter that cannot be read.
    """
    machine, build = machine or Machine(), build or Build.here()
    if requested == "auto":
        requested = os.environ.get("DS4_DEVICE") or requested
    experts = experts_of(model or str(data.TARGET))
    offered = [(device, backend) for backend, found in build.devices.items() for device in found]
    if requested.lower().startswith("rpc:"):
        offered.append((remote_device(requested), "rpc"))
    devices = [_device(device, backend, machine, build, check, experts) for device, backend in offered]
    findings = find_problems(machine, build)
    chosen = choose_device(requested, devices)
    if chosen is None:
        findings.append(missing_device(requested, machine, build, findings))
    fit = check_fit(model, drafter, context, machine, requested) if model else None
    return DoctorReport(requested, _native.cpu_kernels(), devices, findings, fit)


def choose_device(requested: str, devices: list[DeviceReport]) -> DeviceReport | None:
    """Returns the device that a user means by a name, or None if it is not here."""
    if requested == "auto":
        kinds = ("gpu", "igpu", "cpu")
        ordered = [each for kind in kinds for each in devices if each.device["kind"] == kind]
        return next(iter(ordered), None)
    wanted = requested.lower() if requested.lower().startswith("rpc:") else ggml_name(requested)
    return next((each for each in devices if each.device["name"].lower() == wanted), None)


def ggml_name(name: str) -> str:
    """Translates `cuda:0`, `hip` and `metal` to ggml's names, in lower case."""
    plain = name.lower().replace(":", "").replace("hip", "rocm").replace("metal", "mtl")
    return plain + "0" if plain in ("cuda", "rocm", "vulkan", "mtl") else plain


def remote_device(name: str) -> Device:
    """Describes the device of an RPC server, of which nothing is known before it is tried."""
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
    check: Callable[[str], DeviceCheck],
    experts: frozenset[str],
) -> DeviceReport:
    cuda_graphs = []
    if backend == "cuda":
        graphs = "USE_GRAPHS" in build.features["cuda"]
        cuda_graphs = predict_captures(set(experts), compute_capability(), built_with_graphs=graphs)
    found = check(device["name"]) if device["kind"] in ("cpu", "gpu", "igpu") else None
    used = found.ops if found else {}
    words = {op: str(used_status(op, backend, used.get(op))) for op in OPS}
    return DeviceReport(device, backend, driver_of(backend, machine), words, found, cuda_graphs)


def used_status(op: str, backend: str, by: str | None) -> BackendStatus:
    """Returns the backend status of an op, for the implementation `by` that was used.

    That is the table's entry, unless the table names a kernel that was not used.
    """
    entry = backend_status(op, backend)
    if entry.by != "own" or backend == "cpu":
        return entry
    return {"ggml": GGML[backend], "host": ON_HOST}.get(by or "", entry)


def driver_of(backend: str, machine: Machine) -> str | None:
    """Returns the version of a backend's driver, or None if the system does not tell."""
    if backend == "cuda":
        return machine.nvidia_driver
    if backend == "hip":
        return machine.text("sys/module/amdgpu/version") or machine.text("opt/rocm/.info/version")
    return None


def as_dict(found: DoctorReport) -> Json:
    """Returns the report for `--json`."""
    return {
        "asked": found.requested,
        "usable": found.usable,
        "chosen": found.chosen.device["name"] if found.chosen else None,
        "cpu_kernels": found.kernels,
        "devices": [
            {
                **each.device,
                "backend": each.backend,
                "driver": each.driver,
                "ops": each.ops,
                "trial": each.check and each.check.as_dict(),
                "cuda_graphs": [vars(one) for one in each.cuda_graphs],
            }
            for each in found.devices
        ],
        "findings": [vars(each) for each in found.findings],
        "model": found.model_fit and found.model_fit.as_dict(),
    }
