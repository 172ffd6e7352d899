"""A loaded model and the sessions that run it."""

from ds4py.runtime.engine import Engine
from ds4py.runtime.session import Session
from ds4py.runtime.threads import default_threads

__all__ = ["Engine", "Session", "default_threads"]
