"""Saves the states of a training, and the finished model."""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

from .optimisers import Optimisers


@dataclass
class Settings:
    """The settings of a training. A checkpoint of other settings is not continued."""

    model: Any
    amount: int
    seed: int


def save(path: Path, step: int, model: nn.Module, optimisers: Optimisers, settings: Settings) -> None:
    """Saves everything that the next step needs."""
    state = {
        "step": step,
        "model": model.state_dict(),
        "optimisers": optimisers.state_dict(),
        "settings": asdict(settings),
    }
    write(path, state)


def resume(path: Path, model: nn.Module, optimisers: Optimisers, settings: Settings) -> int:
    """Returns the number of steps that were done, or 0 if there is no checkpoint of the same training."""
    if not path.exists():
        return 0
    state = torch.load(path, weights_only=True)
    if state["settings"] != asdict(settings):
        raise SystemExit(f"{path} belongs to another training ({state['settings']}); remove it, or use another folder")
    model.load_state_dict(state["model"])
    optimisers.load_state_dict(state["optimisers"])
    return int(state["step"])


def write(path: Path, state: dict[str, Any]) -> None:
    """Writes to a temporary name, and renames it."""
    partial = path.with_suffix(".partial")
    torch.save(state, partial)
    os.replace(partial, path)


def load_model(path: Path, model: nn.Module) -> nn.Module:
    """Loads the weights of a finished model."""
    model.load_state_dict(torch.load(path, weights_only=True))
    return model.eval()
