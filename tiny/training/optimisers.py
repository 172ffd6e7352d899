"""Optimises matrices of attention and shared experts with Muon, and the rest with AdamW."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor, nn

MUON = ("wq_a", "wq_b", "wkv", "wo_a", "wo_b", "shared13", "shared2", "main_proj")
"""Modules whose weights Muon updates. Gates and small tensors do better with AdamW."""
ADAM_RATES = {"w13": 2e-3, "w2": 2e-3, "embed": 6e-3}
ADAM_RATE, MUON_RATE, MUON_DECAY = 2.5e-3, 0.02, 0.05
EXPERT_DECAY = 0.02
WARM_UP, FLAT, FLOOR = 40, 0.45, 0.03


class Muon(torch.optim.Optimizer):
    """Momentum whose update is made orthogonal by Newton-Schulz steps (Jordan et al., 2024).

    `blocks` tells the groups of a grouped projection [groups * rows, columns] apart.
    """

    def __init__(self, parameters: Iterable[nn.Parameter], blocks: dict[int, int]) -> None:
        super().__init__(parameters, {"lr": MUON_RATE})
        self.blocks = blocks

    @torch.no_grad()
    def step(self) -> None:  # type: ignore[override]
        """Updates every parameter that has a gradient."""
        for group in self.param_groups:
            by_shape: dict[tuple[int, ...], list[tuple[nn.Parameter, Tensor]]] = {}
            for parameter in group["params"]:
                moment = self.state[parameter].setdefault("moment", torch.zeros_like(parameter))
                moment.lerp_(parameter.grad, 0.05)
                update = parameter.grad.lerp(moment, 0.95).unflatten(0, (self.blocks.get(id(parameter), 1), -1))
                by_shape.setdefault(tuple(update.shape[1:]), []).append((parameter, update))
            for (rows, columns), members in by_shape.items():
                turned = orthogonal(torch.cat([update for _, update in members]))
                scale = max(1.0, rows / columns) ** 0.5
                parts = turned.split([len(update) for _, update in members])
                for (parameter, _), part in zip(members, parts, strict=True):
                    parameter.mul_(1 - group["lr"] * MUON_DECAY).sub_(
                        part.reshape(parameter.shape), alpha=group["lr"] * scale
                    )


def orthogonal(matrices: Tensor) -> Tensor:
    """Returns nearly the nearest orthogonal matrices of [n, rows, columns]: singular values are near 1."""
    tall = matrices.shape[-2] > matrices.shape[-1]
    x = matrices.mT if tall else matrices
    x = x / (x.norm(dim=(-2, -1), keepdim=True) + 1e-7)
    for _ in range(5):
        square = x @ x.mT
        x = 3.4445 * x + (-4.7750 * square + 2.0315 * square @ square) @ x
    return x.mT if tall else x


class Optimisers:
    """The two optimisers, Muon and AdamW, with one schedule: warm-up, constant, then linear decay to a floor."""

    def __init__(self, model: nn.Module) -> None:
        matrices, blocks, others = [], {}, []
        for name, parameter in model.named_parameters():
            owner, _, leaf = name.rpartition(".")
            if leaf == "weight" and owner.rpartition(".")[2] in MUON:
                matrices.append(parameter)
                if owner.endswith("wo_a"):
                    blocks[id(parameter)] = model.shape.output_groups
            else:
                decay = EXPERT_DECAY if leaf in ("w13", "w2") else 0.0
                others.append({"params": [parameter], "lr": ADAM_RATES.get(leaf, ADAM_RATE), "weight_decay": decay})
        self.clipped = [group["params"][0] for group in others]
        adam = torch.optim.AdamW(others, betas=(0.9, 0.95), eps=1e-10, fused=True)
        self.all: tuple[torch.optim.Optimizer, ...] = (Muon(matrices, blocks), adam)
        self.rates = [[group["lr"] for group in each.param_groups] for each in self.all]

    def step(self, number: int, done: float) -> float:
        """Clips gradients and updates. `done` is the share of the training that is done.

        Returns the factor of the schedule.
        """
        factor = min(1.0, (number + 1) / WARM_UP) * min(1.0, max(FLOOR, 1 - (done - FLAT) / (1 - FLAT)))
        nn.utils.clip_grad_norm_(self.clipped, 1.0)
        for each, rates in zip(self.all, self.rates, strict=True):
            for group, rate in zip(each.param_groups, rates, strict=True):
                group["lr"] = rate * factor
            each.step()
            each.zero_grad(set_to_none=True)
        return factor

    def state_dict(self) -> list[dict[str, object]]:
        return [each.state_dict() for each in self.all]

    def load_state_dict(self, states: list[dict[str, object]]) -> None:
        for each, state in zip(self.all, states, strict=True):
            each.load_state_dict(state)
