"""Draws the costs of a profile, and the speeds that follow from them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import numpy as np

from ds4py.errors import RequestError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from ds4py.profile.depth_costs import DepthCosts
    from ds4py.profile.measure import Profile


def plot(profile: Profile, path: str, title: str) -> None:
    """Draws V(k), the speeds to expect, and where speculation pays. The file's ending decides the format.

    Raises RequestError as `check_plot` does.
    """
    check_plot(path)
    from matplotlib import pyplot

    count = len(profile.depths)
    figure, axes = pyplot.subplots(1, count + 1, figsize=(5 * (count + 1), 4.2), layout="constrained")
    _curves(axes[0], profile)
    for axis, depth in zip(axes[1:], profile.depths, strict=True):
        _speeds(axis, depth)
    figure.suptitle(title)
    _save(figure, path)
    pyplot.close(figure)


def check_plot(path: str) -> None:
    """Raises RequestError if matplotlib is not installed, or if it cannot write this file."""
    try:
        import matplotlib
    except ImportError:
        raise RequestError("--plot needs matplotlib: pip install 'ds4py[plot]'") from None
    matplotlib.use("Agg")
    from matplotlib.backend_bases import FigureCanvasBase

    folder, ending = os.path.dirname(path) or ".", os.path.splitext(path)[1]
    kinds = FigureCanvasBase.get_supported_filetypes()
    if ending[1:].lower() not in kinds:
        raise RequestError(f"cannot draw {path}: wanted a name that ends with one of {', '.join(sorted(kinds))}")
    if not os.path.isdir(folder):
        raise RequestError(f"cannot draw {path}: there is no folder {folder}")


def _save(figure: Figure, path: str) -> None:
    """Writes to a temporary name and renames it, so that the file is whole or absent."""
    stem, ending = os.path.splitext(path)
    temporary = f"{stem}.part{ending}"
    figure.savefig(temporary)
    os.replace(temporary, path)


def _curves(axis: Axes, profile: Profile) -> None:
    for each in profile.depths:
        (line,) = axis.plot(range(len(each.verify_ms)), each.verify_ms, marker="o", label=f"V(k) at {each.depth}")
        axis.axhline(each.plain_ms, color=line.get_color(), linestyle=":", label=f"plain step at {each.depth}")
        if each.draft_ms is not None:
            axis.axhline(each.draft_ms, color=line.get_color(), linestyle="--", label=f"draft at {each.depth}")
    axis.set(xlabel="width k", ylabel="milliseconds", title="Costs", ylim=(0, None))
    axis.legend(fontsize="small")


def _speeds(axis: Axes, depth: DepthCosts) -> None:
    survivals = np.linspace(0, 1, 101)
    best = [depth.speed(a)[1] for a in survivals]
    for k in range(1, len(depth.verify_ms)):
        axis.plot(survivals, [depth.speed_at(k, a) for a in survivals], linewidth=0.8, label=f"k = {k}")
    plain = 1000 / depth.plain_ms
    axis.plot(survivals, best, color="black", label="best")
    axis.axhline(plain, color="black", linestyle=":", label="plain")
    axis.fill_between(survivals, plain, best, alpha=0.15)
    axis.set(xlabel="survival of a proposal", ylabel="tokens a second", title=f"Depth {depth.depth}", ylim=(0, None))
    axis.legend(fontsize="small")
