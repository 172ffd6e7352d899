"""Which devices hold which parts of a model, planned from sizes before anything is loaded."""

from ds4py.memory.plan import DeviceNeed, DeviceOptions, Plan, find_plan, measure_files, shared_memory_note

__all__ = ["DeviceNeed", "DeviceOptions", "Plan", "find_plan", "measure_files", "shared_memory_note"]
