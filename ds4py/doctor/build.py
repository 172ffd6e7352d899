"""Describes the backends of this installation, and the devices that they find."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict

from ds4py import _native

BACKEND_NAMES = {
    "CUDA": "cuda",
    "ROCm": "hip",
    "MTL": "metal",
    "Metal": "metal",
    "Vulkan": "vulkan",
    "RPC": "rpc",
    "CPU": "cpu",
}
"""The names that ds4py gives ggml's backends."""


class Device(TypedDict):
    """A device that ggml offers."""

    name: str
    description: str
    kind: str
    id: str
    memory_free: int
    memory_total: int
    addresses_host_memory: bool


@dataclass(frozen=True)
class Build:
    """The backends of an installation, under the names that ds4py gives them.

    Attributes:
        present: backends whose library is installed.
        features: the features of each backend that is loaded.
        devices: the devices of each backend that is loaded.
    """

    present: frozenset[str]
    features: dict[str, dict[str, str]]
    devices: dict[str, list[Device]]

    @property
    def loaded(self) -> frozenset[str]:
        """Backends that are loaded, with or without a device."""
        return frozenset(self.features)

    @classmethod
    def here(cls) -> Build:
        """Describes this installation."""
        found = _native.backends()
        features = {BACKEND_NAMES[each["name"]]: each["features"] for each in found if each["name"] in BACKEND_NAMES}
        devices = {BACKEND_NAMES[each["name"]]: each["devices"] for each in found if each["name"] in BACKEND_NAMES}
        return cls(frozenset(features) | backend_libraries(Path(_native.__file__).parent / "lib"), features, devices)


def backend_libraries(folder: Path) -> frozenset[str]:
    """Returns the backends whose library lies in a folder, whether or not it can be loaded."""
    known = {"cuda", "hip", "metal", "vulkan", "rpc"}
    return frozenset(name for name in known if any(folder.glob(f"*ggml-{name}.*")))
