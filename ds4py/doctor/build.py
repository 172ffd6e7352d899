"""What this installation was built with, and what of it is there now."""

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
"""Our names of ggml's backends."""


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
    """Backends by our names: those whose code is here, and those that are loaded, with their features and devices."""

    present: frozenset[str]
    features: dict[str, dict[str, str]]
    devices: dict[str, list[Device]]

    @property
    def loaded(self) -> frozenset[str]:
        """Backends that registered, those without a device too."""
        return frozenset(self.features)

    @classmethod
    def here(cls) -> Build:
        """This installation."""
        found = _native.backends()
        features = {BACKEND_NAMES[each["name"]]: each["features"] for each in found if each["name"] in BACKEND_NAMES}
        devices = {BACKEND_NAMES[each["name"]]: each["devices"] for each in found if each["name"] in BACKEND_NAMES}
        return cls(frozenset(features) | backend_libraries(Path(_native.__file__).parent / "lib"), features, devices)


def backend_libraries(folder: Path) -> frozenset[str]:
    """Backends whose library lies in a folder, whether or not it could be loaded."""
    known = {"cuda", "hip", "metal", "vulkan", "rpc"}
    return frozenset(name for name in known if any(folder.glob(f"*ggml-{name}.*")))
