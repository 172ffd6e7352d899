"""The prefix cache: a prompt that begins as an earlier one is evaluated from where they differ.

It keeps sessions, live in a pool and saved on disk, and lends each request the one that holds the most of its prompt.
"""

from ds4py.prefix_cache.disk import DiskCache, prepared_folder
from ds4py.prefix_cache.leased import LeasedSession, caller_session
from ds4py.prefix_cache.pool import DEFAULT_CACHE_BYTES, SessionPool
from ds4py.prefix_cache.prefix import cache_breakpoints, check_length

__all__ = [
    "DEFAULT_CACHE_BYTES",
    "DiskCache",
    "LeasedSession",
    "SessionPool",
    "cache_breakpoints",
    "caller_session",
    "check_length",
    "prepared_folder",
]
