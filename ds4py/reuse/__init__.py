"""Prompts that begin as earlier ones did are not evaluated again: sessions, live and on disk, that are shared."""

from ds4py.reuse.disk import prepared
from ds4py.reuse.pool import DEFAULT_CACHE_BYTES, Lease, SessionPool, check_length
from ds4py.reuse.prefix import Lent, resume, turn_marks

__all__ = [
    "DEFAULT_CACHE_BYTES",
    "Lease",
    "Lent",
    "SessionPool",
    "check_length",
    "prepared",
    "resume",
    "turn_marks",
]
