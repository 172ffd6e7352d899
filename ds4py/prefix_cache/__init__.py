"""Prompts that begin as earlier ones did are not evaluated again: sessions, live and on disk, that are shared."""

from ds4py.prefix_cache.disk import prepared
from ds4py.prefix_cache.pool import DEFAULT_CACHE_BYTES, LeasedSession, SessionPool, check_length
from ds4py.prefix_cache.prefix import CallerSession, cache_breakpoints, resume

__all__ = [
    "DEFAULT_CACHE_BYTES",
    "CallerSession",
    "LeasedSession",
    "SessionPool",
    "cache_breakpoints",
    "check_length",
    "prepared",
    "resume",
]
