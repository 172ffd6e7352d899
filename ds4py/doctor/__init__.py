"""Finds out which devices there are, what computes on them, how far that is proven, and what is missing."""

from ds4py.doctor.build import Build
from ds4py.doctor.device_check import DeviceCheck, check_device
from ds4py.doctor.findings import Finding
from ds4py.doctor.machine import Machine
from ds4py.doctor.report import DeviceReport, DoctorReport, as_dict, report

__all__ = [
    "Build",
    "DeviceCheck",
    "DeviceReport",
    "DoctorReport",
    "Finding",
    "Machine",
    "as_dict",
    "check_device",
    "report",
]
