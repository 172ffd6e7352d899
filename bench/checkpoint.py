"""Writes a checkpoint of random weights in the published number formats, of any size, a tensor at a time."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ds4py.converter.roles import EXPERTS, Role, Slot, target_slots
from ds4py.converter.source.names import Naming, target_slices
from ds4py.converter.source.read_config import read_config

LAYER_BYTES = 32 * 3 * 2048 * 1024 * 17 // 32
"""Bytes of most of a layer: 32 experts with three matrices of 2048 x 1024 in FP4."""

CONFIG = {
    "model_type": "deepseek_v4", "hidden_size": 2048, "vocab_size": 32768, "max_position_embeddings": 65536,
    "num_attention_heads": 16, "head_dim": 512, "qk_rope_head_dim": 64, "q_lora_rank": 768, "o_groups": 4,
    "o_lora_rank": 512, "sliding_window": 128, "rope_theta": 10000, "compress_rope_theta": 160000, "index_n_heads": 64,
    "index_head_dim": 128, "index_topk": 512, "n_routed_experts": 32, "num_experts_per_tok": 6,
    "moe_intermediate_size": 1024, "num_hash_layers": 0, "routed_scaling_factor": 1.5, "swiglu_limit": 10, "hc_mult": 4,
    "hc_sinkhorn_iters": 20, "hc_eps": 1e-6, "rms_norm_eps": 1e-6,
    "rope_scaling": {"type": "yarn", "factor": 16, "original_max_position_embeddings": 65536},
}  # fmt: skip


@dataclass
class Stored:
    """A tensor to be written."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    low: int
    high: int
    nbytes: int

    def data(self, rng: np.random.Generator) -> bytes:
        """Returns random bytes, or random 16-bit patterns of small numbers, in [low, high)."""
        if self.dtype == "BF16":
            return (rng.standard_normal(self.nbytes // 2, np.float32).view(np.uint32) >> 16).astype(np.uint16).tobytes()
        if self.dtype == "F32":
            return rng.standard_normal(self.nbytes // 4, np.float32).tobytes()
        return rng.integers(self.low, self.high, self.nbytes, np.uint8).tobytes()


def write_checkpoint(folder: Path, size: int) -> Path:
    """Writes a target of about `size` bytes, with a shard for each layer."""
    folder.mkdir(parents=True, exist_ok=True)
    layers = max(1, round((size - 2 * 2 * 32768 * 2048) / LAYER_BYTES))
    ratios = [0, 4, 128] * layers
    config = {**CONFIG, "num_hidden_layers": layers, "compress_ratios": ratios[:layers]}
    (folder / "config.json").write_text(json.dumps(config))
    shards: dict[str, list[Stored]] = {}
    for slot in target_slots(read_config(folder)):
        shard = slot.name.split(".")[1] if slot.name.startswith("blk.") else "top"
        shards.setdefault(f"model-{shard}.safetensors", []).extend(stored(slot))
    rng = np.random.default_rng(1)
    for file, tensors in shards.items():
        write_shard(folder / file, tensors, rng)
    return folder


def stored(slot: Slot) -> Iterator[Stored]:
    """Yields the tensors of a slot. Experts are FP4, large matrices FP8, tables and small matrices BF16, others F32."""
    for piece in target_slices(Naming.DEEPSEEK, slot):
        scale = piece.name.removesuffix(".weight") + ".scale"
        shape, elements = piece.shape, int(np.prod(piece.shape))
        if slot.role in EXPERTS:
            yield Stored(piece.name, "I8", (shape[0], shape[1] // 2), 0, 256, elements // 2)
            yield Stored(scale, "F8_E8M0", (shape[0], shape[1] // 32), 119, 122, elements // 32)
        elif slot.role in (Role.ATTENTION, Role.SHARED):
            blocks = (-(-shape[0] // 128), -(-shape[1] // 128))
            yield Stored(piece.name, "F8_E4M3", shape, 0, 127, elements)
            yield Stored(scale, "F8_E8M0", blocks, 113, 116, blocks[0] * blocks[1])
        elif slot.role in (Role.EMBEDDING, Role.OUTPUT, Role.SMALL):
            yield Stored(piece.name, "BF16", shape, 0, 0, 2 * elements)
        else:
            yield Stored(piece.name, "F32", shape, 0, 0, 4 * elements)


def write_shard(path: Path, tensors: list[Stored], rng: np.random.Generator) -> None:
    """Writes a safetensors file."""
    header, place = {}, 0
    for each in tensors:
        header[each.name] = {"dtype": each.dtype, "shape": each.shape, "data_offsets": [place, place + each.nbytes]}
        place += each.nbytes
    text = json.dumps(header).encode()
    with path.open("wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for each in tensors:
            file.write(each.data(rng))
