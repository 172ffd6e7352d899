"""Prompts that begin as earlier ones did are not evaluated again: live sessions shared by conversations."""

from ds4py.reuse.pool import Lease, SessionPool, check_length
from ds4py.reuse.prefix import Lent, common_prefix, resume

__all__ = ["Lease", "Lent", "SessionPool", "check_length", "common_prefix", "resume"]
