"""Measures what model files take of each device, without loading them."""

from __future__ import annotations

from collections.abc import Sequence

from ds4py import _native
from ds4py.memory.needs import PARTS, DeviceNeed, DeviceOptions, Measure


def measure_files(
    target: _native.GgufFile, drafter: _native.GgufFile | None, *, kv_dtype: str = "f16", repack: bool = True
) -> Measure:
    """Returns a function that measures what a target, and its drafter if there is one, take of each device.

    Args:
        kv_dtype: type of the KV state, "f16" or "f32".
        repack: whether weights are repacked for the CPU's kernels.

    The function raises RequestError for devices that do not exist or that its options do not fit.
    """

    def measure(options: DeviceOptions) -> Sequence[DeviceNeed]:
        found = _native.memory_by_device(
            target,
            drafter,
            context=options.context,
            kv_dtype=kv_dtype,
            device=options.device,
            split=list(options.split),
            cpu_moe=options.cpu_moe,
            repack=repack,
        )
        needs = [
            DeviceNeed(each.device, each.host, each.available, {part: getattr(each, part) for part in PARTS})
            for each in found
        ]
        return [need for need in needs if any(need.parts.values())]

    return measure
