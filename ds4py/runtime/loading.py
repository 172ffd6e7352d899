"""Loads a target and its drafter to the devices that a memory plan gives them."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass

from ds4py import _native
from ds4py.memory import DeviceOptions, Plan, find_plan, measure_files, shared_memory_note
from ds4py.speculative import DrafterInfo

LoadProgress = Callable[[float], None]
"""Called with the fraction of the weights that is loaded, 0 to 1."""


@dataclass(frozen=True)
class ModelFiles:
    """The files of a pair, open and checked, of which nothing is loaded yet.

    Attributes:
        layers: the target's.
        context: positions that the target was trained for.
    """

    target: _native.GgufFile
    drafter: _native.GgufFile | None
    layers: int
    context: int

    @classmethod
    def open(cls, target: str, drafter: str | os.PathLike[str] | None) -> ModelFiles:
        """Opens the files. Raises FormatError or PairError for a pair that cannot run, before anything is loaded."""
        opened = _native.GgufFile.open(target)
        drafts = None if drafter is None else _native.GgufFile.open(os.fspath(drafter))
        numbers = _native.read_hyperparameters(opened)
        if drafts is not None:
            _native.read_drafter(drafts, numbers)
        return cls(opened, drafts, numbers.layers, numbers.context)

    @property
    def target_share(self) -> float:
        """The target's fraction of the bytes of both files."""
        return self.target.file_bytes / (self.target.file_bytes + (self.drafter.file_bytes if self.drafter else 0))


@dataclass(frozen=True)
class LoadedModels:
    """A target in memory, and its drafter where there is one.

    Attributes:
        info: what the drafter is; None without one.
        notes: what there is to say of memory and of where the models are, for people.
    """

    target: _native.Model
    drafter: _native.Drafter | None
    info: DrafterInfo | None
    notes: tuple[str, ...]


def load_models(
    files: ModelFiles,
    path: str,
    drafter: str | os.PathLike[str] | None,
    options: DeviceOptions,
    *,
    threads: int | None,
    repack: bool,
    progress: LoadProgress | None,
) -> LoadedModels:
    """Loads the pair as `options` say or, for the device "auto", as it fits.

    Raises BackendError where a device has no room, RequestError for a device that does not exist.
    """
    plan = find_plan(measure_files(files.target, files.drafter, repack=repack), options, files.layers)
    target = _load_target(path, plan, threads, repack, _part(progress, 0.0, files.target_share))
    loaded, info = None, None
    if drafter is not None:
        drafter = os.fspath(drafter)
        loaded = _native.Drafter.load(drafter, target, progress=_part(progress, files.target_share, 1.0))
        info = DrafterInfo.of(drafter, loaded)
    shared = shared_memory_note(files.target.paths, files.target.file_bytes)
    return LoadedModels(target, loaded, info, plan.notes + ((shared,) if shared else ()))


def _load_target(
    path: str, plan: Plan, threads: int | None, repack: bool, progress: LoadProgress | None
) -> _native.Model:
    return _native.Model.load(
        path,
        device=plan.options.device,
        split=list(plan.options.split),
        cpu_moe=plan.options.cpu_moe,
        threads=threads,
        repack=repack,
        reserve=plan.host_reserve,
        progress=progress,
    )


def _part(progress: LoadProgress | None, begin: float, end: float) -> LoadProgress | None:
    """The progress of a part that goes from `begin` to `end` of the whole."""
    if progress is None:
        return None
    report = progress
    return lambda fraction: report(begin + (end - begin) * fraction)
