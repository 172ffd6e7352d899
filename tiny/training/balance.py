"""Keeps experts about equally busy without an additional loss (the method `noaux_tc` of DeepSeek-V4)."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor

from ..model.layers import Experts
from .processes import average

STEP = 2e-3


def balance(layers: Iterable[Experts], chosen: Iterable[Tensor], factor: float) -> None:
    """Moves the biases of the routers by the loads of all processes. Routing by table has no bias.

    `factor` is the factor of the schedule.
    """
    for layer, used in zip(layers, chosen, strict=True):
        if not layer.hashed:
            load = torch.bincount(used.flatten(), minlength=layer.shape.experts).float()
            average([load])
            layer.balance(load, STEP * factor)
