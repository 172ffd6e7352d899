"""Plans which devices hold which parts of a model, from tensor sizes, before anything is loaded."""

from ds4py.memory.measure import measure_files
from ds4py.memory.needs import DEVICE_RESERVE, NAMES, PARTS, DeviceNeed, DeviceOptions, Measure
from ds4py.memory.plan import Plan, find_plan
from ds4py.memory.sharing import others_with, shared_memory_note

__all__ = [
    "DEVICE_RESERVE",
    "NAMES",
    "PARTS",
    "DeviceNeed",
    "DeviceOptions",
    "Measure",
    "Plan",
    "find_plan",
    "measure_files",
    "others_with",
    "shared_memory_note",
]
