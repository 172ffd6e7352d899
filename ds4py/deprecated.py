"""Names of version 0.1 that have moved; they work for one more version, with a DeprecationWarning.

An import such as `from ds4py.engine import Engine` is answered with a module that holds the names of the new one.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
Result = TypeVar("Result")

MOVED = {
    "ds4py.cancelling": "ds4py.generation.cancelling",
    "ds4py.conversation": "ds4py.generation",
    "ds4py.cost_store": "ds4py.speculative.cost_store",
    "ds4py.embedded": "ds4py.data",
    "ds4py.engine": "ds4py.runtime.engine",
    "ds4py.logprobs": "ds4py.sampling.logprobs",
    "ds4py.options": "ds4py.generation.options",
    "ds4py.placement": "ds4py.memory",
    "ds4py.proof": "ds4py.runtime.backend_status",
    "ds4py.reuse": "ds4py.prefix_cache",
    "ds4py.session": "ds4py.runtime.session",
    "ds4py.speculative.expected": "ds4py.speculative.cost_model",
    "ds4py.speculative.width": "ds4py.speculative.draft_length",
    "ds4py.stats": "ds4py.generation.stats",
    "ds4py.stopping": "ds4py.generation.stop_strings",
    "ds4py.threads": "ds4py.runtime.threads",
}
"""Modules, from old to new."""

RENAMED = {
    "Lease": "LeasedSession",
    "Lent": "caller_session",
    "Options": "GenerationOptions",
    "Proof": "BackendStatus",
    "MOST": "MAX_DRAFT_LENGTH",
    "Wanted": "DeviceOptions",
    "Width": "DraftLengthPolicy",
    "as_width": "as_draft_length",
    "best_width": "best_draft_length",
    "checked": "check_times",
    "emitted": "expected_tokens",
    "prepared": "prepared_folder",
    "proof": "backend_status",
    "survival": "prefix_survival",
    "turn_marks": "cache_breakpoints",
    "unproven": "unproven_note",
    "worthwhile": "admitted_proposals",
}
"""Names inside those modules, from old to new."""


class MovedModules(MetaPathFinder, Loader):
    """Finds the modules of `MOVED`."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The specification of a moved module; None for any other name."""
        return ModuleSpec(fullname, self) if fullname in MOVED else None

    def create_module(self, spec: ModuleSpec) -> None:
        """Leaves the making of the module to Python."""

    def exec_module(self, module: ModuleType) -> None:
        """Fills the module with the names of its successor, and warns once where it is imported."""
        new = MOVED[module.__name__]
        warnings.warn(f"{module.__name__} has moved: import {new} instead", DeprecationWarning, stacklevel=2)
        names = {name: value for name, value in vars(import_module(new)).items() if not name.startswith("__")}
        vars(module).update(names, **{old: names[now] for old, now in RENAMED.items() if now in names})


def install() -> None:
    """Makes Python find the moved modules."""
    if not any(isinstance(finder, MovedModules) for finder in sys.meta_path):
        sys.meta_path.insert(0, MovedModules())  # first: an old folder left in a clone would look like a package


def renamed(module: str, names: Mapping[str, str]) -> Callable[[str], Any]:
    """A `__getattr__` for `module`, whose `names`, from old to new, still work with a DeprecationWarning."""

    def get(name: str) -> Any:
        if name not in names:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        warnings.warn(f"{module}.{name} is now {module}.{names[name]}", DeprecationWarning, stacklevel=2)
        return getattr(sys.modules[module], names[name])

    return get


def renamed_attributes(names: Mapping[str, str]) -> Callable[[Any, str], Any]:
    """A `__getattr__` for a class, whose attributes `names`, from old to new, still work with a DeprecationWarning."""

    def get(self: object, name: str) -> Any:
        kind = type(self).__name__
        if name not in names:
            raise AttributeError(f"{kind!r} object has no attribute {name!r}", name=name, obj=self)
        warnings.warn(f"{kind}.{name} is now {kind}.{names[name]}", DeprecationWarning, stacklevel=2)
        return getattr(self, names[name])

    return get


def renamed_arguments(**names: str) -> Callable[[Callable[P, Result]], Callable[P, Result]]:
    """Decorates a function whose keyword arguments `names`, from old to new, still work with a DeprecationWarning.

    A call with both the old and the new argument raises TypeError.
    """

    def decorate(function: Callable[P, Result]) -> Callable[P, Result]:
        @wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> Result:
            for old in names.keys() & kwargs.keys():
                rename_argument(kwargs, old, names[old], function.__qualname__)
            return function(*args, **kwargs)

        return call

    return decorate


def rename_argument(arguments: dict[str, Any], old: str, new: str, function: str) -> None:
    """Moves a keyword argument from its old to its new name, with a DeprecationWarning for the function's caller."""
    if new in arguments:
        raise TypeError(f"{function} got both {old}= and {new}=, its old and its new name")
    warnings.warn(f"{function}({old}=...) is now {function}({new}=...)", DeprecationWarning, stacklevel=3)
    arguments[new] = arguments.pop(old)
