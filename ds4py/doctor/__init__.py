"""What `ds4py doctor` finds out: devices, what computes on them, how far that is proven, and what is missing."""

from ds4py.doctor.build import Build
from ds4py.doctor.findings import Finding
from ds4py.doctor.machine import Machine
from ds4py.doctor.report import DeviceReport, Report, as_dict, report
from ds4py.doctor.trial import Trial, try_device

__all__ = ["Build", "DeviceReport", "Finding", "Machine", "Report", "Trial", "as_dict", "report", "try_device"]
