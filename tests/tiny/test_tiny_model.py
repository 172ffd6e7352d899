"""The training recipe's PyTorch model: its operations against compositions of PyTorch's; needs the training extra."""

from __future__ import annotations

from dataclasses import replace

import pytest

torch = pytest.importorskip("torch", reason="needs the training extra: pip install '.[training]'")

from torch import Tensor  # noqa: E402

from tiny.config import DraftShape, Shape  # noqa: E402
from tiny.model import ops  # noqa: E402
from tiny.model.decode import Decoder, generate  # noqa: E402
from tiny.model.drafter import Drafter  # noqa: E402
from tiny.model.target import Target  # noqa: E402

SMALL = Shape(
    vocab=64, hidden=32, heads=2, head_size=16, rope_size=8, query_rank=16, output_rank=8, window=16, index_heads=2,
    index_size=16, index_top_k=4, experts=4, expert_width=16,
)  # fmt: skip


def random(*shape: int) -> Tensor:
    return torch.randn(*shape, requires_grad=True)


def same(ours: Tensor, wanted: Tensor, *inputs: Tensor) -> None:
    """Values and gradients of all inputs, for a random direction."""
    assert torch.allclose(ours, wanted, rtol=1e-5, atol=1e-5)
    direction = torch.randn_like(ours)
    found = torch.autograd.grad(ours, inputs, direction)
    for one, other in zip(found, torch.autograd.grad(wanted, inputs, direction), strict=True):
        assert torch.allclose(one, other, rtol=1e-4, atol=1e-5), (one - other).abs().max()


def plain_sinkhorn(logits: Tensor, iterations: int, epsilon: float) -> Tensor:
    m = logits.view(-1, 4, 4).softmax(-1) + epsilon
    for step in range(2 * iterations - 1):
        m = m / (m.sum(1 + step % 2, keepdim=True) + epsilon)
    return m.flatten(1)


def plain_experts(x: Tensor, w13: Tensor, w2: Tensor, ids: Tensor, weights: Tensor, clamp: float) -> Tensor:
    out = []
    for row in range(len(x)):
        parts = [
            weights[row, i] * (w2[e] @ ops.activate(w13[e] @ x[row], clamp)) for i, e in enumerate(ids[row].tolist())
        ]
        out.append(torch.stack(parts).sum(0))
    return torch.stack(out)


def test_norm() -> None:
    x = random(5, 32)
    same(ops.norm(x, None, 1e-6), x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6), x)


@pytest.mark.parametrize("count", [1, 16, 21])
def test_sinkhorn(count: int) -> None:
    x = random(count, 16)
    same(ops.sinkhorn(x, 20, 1e-6), plain_sinkhorn(x, 20, 1e-6), x)


def test_mix_and_post() -> None:
    x, pre, y, comb = random(5, 4, 32), random(5, 4), random(5, 32), random(5, 16)
    same(ops.mix(x, pre), (x * pre[..., None]).sum(1), x, pre)
    wanted = pre[..., None] * y[:, None] + torch.einsum("nst,nsd->ntd", comb.view(-1, 4, 4), x)
    same(ops.post(x, y, pre, comb), wanted, x, y, pre, comb)


def test_experts() -> None:
    x, w13, w2, weights = random(7, 8), random(4, 12, 8), random(4, 8, 6), random(7, 2)
    ids = torch.tensor([[0, 1], [1, 3], [3, 0], [0, 1], [1, 0], [3, 1], [0, 3]])  # expert 2 has no row
    clamp = 1.0
    same(
        ops.experts(x, w13, w2, ids, weights, clamp),
        plain_experts(x, w13, w2, ids, weights, clamp),
        x,
        w13,
        w2,
        weights,
    )


def test_a_position_depends_on_nothing_after_it() -> None:
    torch.manual_seed(0)
    target = Target(SMALL)
    tokens = torch.randint(8, 64, (1, 256))
    changed = tokens.clone()
    changed[0, 150:] = torch.randint(8, 64, (106,))
    with torch.no_grad():
        one, other = target.logits(tokens), target.logits(changed)
    assert torch.allclose(one[:, :150], other[:, :150], atol=1e-5)
    assert not torch.allclose(one[:, 150:], other[:, 150:], atol=1e-3)


def test_a_block_sees_its_window_and_itself_only() -> None:
    torch.manual_seed(0)
    target, drafter = Target(SMALL), Drafter(SMALL, DraftShape(taps=(1, 3, 5), rank=8))
    torch.nn.init.normal_(drafter.confidence)
    features = torch.randn(1, 64, 96)
    anchors = torch.tensor([[20, 40]])
    previous = torch.randint(8, 64, (1, 2, 5))

    def draft(features: Tensor) -> Tensor:
        return drafter(target, features, anchors, previous).logits

    base = draft(features)
    for position, seen in ((3, []), (4, [0]), (19, [0]), (20, []), (23, []), (24, [1]), (39, [1]), (40, [])):
        changed = features.clone()
        changed[0, position] += 1
        moved = (draft(changed) - base).abs().amax((-1, -2))[0] > 1e-6
        assert moved.tolist() == [anchor in seen for anchor in (0, 1)], position


def test_decoding_equals_the_whole_pass() -> None:
    torch.manual_seed(0)
    shape = replace(SMALL, index_top_k=64)
    target = Target(shape)
    tokens = torch.randint(8, 64, (2, 256))
    decoder = Decoder(target, 2, 256)
    found = torch.stack([decoder.step(tokens[:, place]) for place in range(256)], 1)
    with torch.no_grad():
        assert torch.allclose(found, target.logits(tokens), atol=2e-5)


def test_generated_text_keeps_its_prompt_and_greedy_rows_are_greedy() -> None:
    torch.manual_seed(0)
    target = Target(replace(SMALL, index_top_k=64))
    prompts = torch.randint(8, 64, (2, 8))
    texts = generate(target, prompts, 32, torch.tensor([0.0, 1.0]), torch.Generator().manual_seed(1))
    assert (texts[:, :8] == prompts).all()
    with torch.no_grad():
        logits = target.logits(texts)
    logits[..., 2:8] = -torch.inf
    likeliest = logits[:, 7:31].argmax(-1)
    assert (likeliest[0] == texts[0, 8:]).all()
    assert (likeliest[1] != texts[1, 8:]).any()
