"""Writes small checkpoints as they are published, from the golden GGUF files or at random, for tests of the converter.

Names and number formats are written down here once more, apart from the converter's own tables.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import gguf
import numpy as np
from gguf_tools import DRAFTER, TARGET

from ds4py.tokenizer.encoder import SPLITS

LAYER = {
    "attn_norm.weight": "attn_norm.weight", "ffn_norm.weight": "ffn_norm.weight", "attn_sinks.weight": "attn.attn_sink",
    "attn_q_a.weight": "attn.wq_a.weight", "attn_q_a_norm.weight": "attn.q_norm.weight",
    "attn_q_b.weight": "attn.wq_b.weight", "attn_kv.weight": "attn.wkv.weight",
    "attn_kv_a_norm.weight": "attn.kv_norm.weight", "attn_output_a.weight": "attn.wo_a.weight",
    "attn_output_b.weight": "attn.wo_b.weight", "attn_compressor_kv.weight": "attn.compressor.wkv.weight",
    "attn_compressor_gate.weight": "attn.compressor.wgate.weight", "attn_compressor_ape.weight": "attn.compressor.ape",
    "attn_compressor_norm.weight": "attn.compressor.norm.weight",
    "indexer.proj.weight": "attn.indexer.weights_proj.weight",
    "indexer.attn_q_b.weight": "attn.indexer.wq_b.weight",
    "indexer_compressor_kv.weight": "attn.indexer.compressor.wkv.weight",
    "indexer_compressor_gate.weight": "attn.indexer.compressor.wgate.weight",
    "indexer_compressor_ape.weight": "attn.indexer.compressor.ape",
    "indexer_compressor_norm.weight": "attn.indexer.compressor.norm.weight",
    "ffn_gate_inp.weight": "ffn.gate.weight", "exp_probs_b.bias": "ffn.gate.bias",
    "ffn_gate_tid2eid.weight": "ffn.gate.tid2eid", "ffn_gate_shexp.weight": "ffn.shared_experts.w1.weight",
    "ffn_up_shexp.weight": "ffn.shared_experts.w3.weight", "ffn_down_shexp.weight": "ffn.shared_experts.w2.weight",
}  # fmt: skip
LAYER |= {
    f"hc_{where}_{what}.weight": f"hc_{where}_{what}" for where in ("attn", "ffn") for what in ("fn", "base", "scale")
}
EXPERTS = {"ffn_gate_exps.weight": "w1", "ffn_up_exps.weight": "w3", "ffn_down_exps.weight": "w2"}
TOP = {
    "token_embd.weight": "embed.weight", "output.weight": "head.weight", "output_norm.weight": "norm.weight",
    "output_hc_fn.weight": "hc_head_fn", "output_hc_base.weight": "hc_head_base",
    "output_hc_scale.weight": "hc_head_scale",
}  # fmt: skip
DRAFT_FIRST = {"fc.weight": "main_proj.weight", "enc.output_norm.weight": "main_norm.weight"}
DRAFT_LAST = {
    "output_norm.weight": "norm.weight", "output_hc_fn.weight": "hc_head_fn", "output_hc_base.weight": "hc_head_base",
    "output_hc_scale.weight": "hc_head_scale", "markov_w1.weight": "markov_head.markov_w1.weight",
    "markov_w2.weight": "markov_head.markov_w2.weight", "conf_proj.weight": "confidence_head.proj.weight",
}  # fmt: skip

FP8 = re.compile(r".*(attn\.w(q_a|q_b|kv|o_a|o_b)|indexer\.wq_b|shared_experts\.w\d|main_proj)\.weight$")
FP4 = re.compile(r".*\.experts\.\d+\.w\d\.weight$")
BF16 = re.compile(
    r".*(embed|head|norm|gate|wgate|compressor\.wkv|weights_proj|markov_w\d|confidence_head\.proj)\.weight$"
)

E4M3 = np.array(
    [
        (-1) ** (code >> 7)
        * ((code & 7) / 8 * 2.0**-6 if code >> 3 & 15 == 0 else (1 + (code & 7) / 8) * 2.0 ** ((code >> 3 & 15) - 7))
        for code in range(256)
    ]
)
E2M1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6])


@dataclass
class Raw:
    """A tensor as safetensors has it."""

    dtype: str
    shape: tuple[int, ...]
    data: bytes


@dataclass
class Checkpoint:
    """A checkpoint to be: change what should be wrong, then `write()`. `values` is what the tensors stand for."""

    config: dict[str, Any]
    tensors: dict[str, Raw] = field(default_factory=dict)
    values: dict[str, np.ndarray] = field(default_factory=dict)

    def write(self, folder: Path) -> Path:
        """Writes shards of the target, and one for each stage of the drafter, as published; returns the folder."""
        folder.mkdir(parents=True, exist_ok=True)
        shards: dict[str, dict[str, Raw]] = {}
        for name, raw in self.tensors.items():
            stage = re.match(r"mtp\.(\d)", name)
            number = 3 + int(stage[1]) if stage else 1 + (len(shards.get("model-00001-of-00005.safetensors", {})) > 150)
            shards.setdefault(f"model-{number:05}-of-00005.safetensors", {})[name] = raw
        for file, tensors in shards.items():
            save(folder / file, tensors)
        index = {"metadata": {}, "weight_map": {name: file for file, tensors in shards.items() for name in tensors}}
        (folder / "model.safetensors.index.json").write_text(json.dumps(index))
        (folder / "config.json").write_text(json.dumps(self.config))
        return folder


def save(path: Path, tensors: Mapping[str, Raw]) -> None:
    """Writes a safetensors file."""
    header, place = {}, 0
    for name, raw in tensors.items():
        header[name] = {"dtype": raw.dtype, "shape": raw.shape, "data_offsets": [place, place + len(raw.data)]}
        place += len(raw.data)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(len(text).to_bytes(8, "little") + text + b"".join(raw.data for raw in tensors.values()))


def golden(formats: str = "f32", *, drafter: bool = False, seed: int = 3) -> Checkpoint:
    """The golden tiny target (and drafter) under DeepSeek's names.

    `formats` "f32" and "bf16" store its values (which BF16 holds exactly); "fp8" is the published mixture, where
    matrices are FP8 with block scales and experts FP4, of random codes.
    """
    made = Checkpoint(config(drafter=drafter))
    rng = np.random.default_rng(seed)
    for name, value in named_values(drafter):
        raw, meant, scale = encode(name, value, formats, rng)
        made.tensors[name], made.values[name] = raw, meant
        if scale is not None:
            made.tensors[name.removesuffix(".weight") + ".scale"] = scale
    return made


def named_values(drafter: bool) -> Iterable[tuple[str, np.ndarray]]:
    """Returns the golden files' tensors by DeepSeek's names, experts apart."""
    for tensor in gguf.GGUFReader(TARGET).tensors:
        yield from rename(tensor.name, np.array(tensor.data), "layers", TOP, TOP)
    if drafter:
        first = {name: "mtp.0." + other for name, other in DRAFT_FIRST.items()}
        last = {name: "mtp.2." + other for name, other in DRAFT_LAST.items()}
        for tensor in gguf.GGUFReader(DRAFTER).tensors:
            yield from rename(tensor.name, np.array(tensor.data), "mtp", first, last)


def rename(name: str, value: np.ndarray, prefix: str, *single: Mapping[str, str]) -> Iterable[tuple[str, np.ndarray]]:
    if not name.startswith("blk."):
        yield next(table[name] for table in single if name in table), value
        return
    _, layer, suffix = name.split(".", 2)
    if suffix in EXPERTS:
        for expert, matrix in enumerate(value):
            yield f"{prefix}.{layer}.ffn.experts.{expert}.{EXPERTS[suffix]}.weight", matrix
    else:
        yield f"{prefix}.{layer}.{LAYER[suffix]}", value


def encode(name: str, value: np.ndarray, formats: str, rng: np.random.Generator) -> tuple[Raw, np.ndarray, Raw | None]:
    """Returns the tensor as stored, its values, and its scale."""
    if value.dtype == np.int32:
        return Raw("I64", value.shape, value.astype(np.int64).tobytes()), value, None
    if formats == "fp8" and FP4.match(name):
        return fp4(value.shape, rng)
    if formats == "fp8" and FP8.match(name):
        return fp8(value.shape, rng)
    if formats != "f32" and BF16.match(name):
        bits = (value.view(np.uint32) >> 16).astype(np.uint16)
        assert np.array_equal(bits.astype(np.uint32) << 16, value.view(np.uint32))
        return Raw("BF16", value.shape, bits.tobytes()), value, None
    return Raw("F32", value.shape, value.tobytes()), value, None


def fp8(shape: tuple[int, ...], rng: np.random.Generator) -> tuple[Raw, np.ndarray, Raw]:
    """Draws random codes (never NaN) under random block scales that make values of about 1/sqrt(columns)."""
    codes = rng.integers(0, 256, shape, np.uint8)
    codes[(codes & 0x7F) == 0x7F] = 0x38
    size = tuple(-(-each // 128) for each in shape)
    scale = rng.integers(127 - 12, 127 - 8, size, np.uint8)
    spread = np.repeat(np.repeat(2.0 ** (scale.astype(int) - 127), 128, axis=0), 128, axis=1)[: shape[0], : shape[1]]
    values = (E4M3[codes] * spread).astype(np.float32)
    return Raw("F8_E4M3", shape, codes.tobytes()), values, Raw("F8_E8M0", size, scale.tobytes())


def fp4(shape: tuple[int, ...], rng: np.random.Generator) -> tuple[Raw, np.ndarray, Raw]:
    """Draws random codes, element 2j in the low half of byte j, under a random scale for each 32 elements."""
    codes = rng.integers(0, 16, shape, np.uint8)
    size = (shape[0], shape[1] // 32)
    scale = rng.integers(127 - 5, 127 - 3, size, np.uint8)
    values = (E2M1[codes] * np.repeat(2.0 ** (scale.astype(int) - 127), 32, axis=1)).astype(np.float32)
    packed = codes[:, 0::2] | codes[:, 1::2] << 4
    return Raw("I8", packed.shape, packed.tobytes()), values, Raw("F8_E8M0", size, scale.tobytes())


def config(*, drafter: bool) -> dict[str, Any]:
    """`config.json` of the golden pair, with the keys of the published one."""
    fields = {key: field.contents() for key, field in gguf.GGUFReader(TARGET).fields.items()}

    def of(key: str) -> Any:
        return fields["deepseek4." + key]

    found = {
        "architectures": ["DeepseekV4ForCausalLM"], "model_type": "deepseek_v4", "vocab_size": of("vocab_size"),
        "hidden_size": of("embedding_length"), "num_hidden_layers": of("block_count"),
        "max_position_embeddings": of("context_length"), "num_attention_heads": of("attention.head_count"),
        "num_key_value_heads": 1, "head_dim": of("attention.key_length"),
        "qk_rope_head_dim": of("rope.dimension_count"),
        "q_lora_rank": of("attention.q_lora_rank"), "o_groups": of("attention.output_group_count"),
        "o_lora_rank": of("attention.output_lora_rank"), "sliding_window": of("attention.sliding_window"),
        "compress_ratios": [*of("attention.compress_ratios"), *[0] * (3 if drafter else 1)],
        "rope_theta": 10000.0, "compress_rope_theta": 160000.0,
        "rope_scaling": {
            "type": "yarn", "factor": 16, "original_max_position_embeddings": 512, "beta_fast": 32, "beta_slow": 1,
        },
        "index_n_heads": of("attention.indexer.head_count"), "index_head_dim": of("attention.indexer.key_length"),
        "index_topk": of("attention.indexer.top_k"), "n_routed_experts": of("expert_count"),
        "num_experts_per_tok": of("expert_used_count"), "n_shared_experts": 1,
        "moe_intermediate_size": of("expert_feed_forward_length"), "num_hash_layers": of("hash_layer_count"),
        "scoring_func": "sqrtsoftplus", "topk_method": "noaux_tc", "norm_topk_prob": True, "routed_scaling_factor": 1.5,
        "swiglu_limit": 1.5, "hc_mult": 4, "hc_sinkhorn_iters": 20, "hc_eps": 1e-6, "rms_norm_eps": 1e-6,
        "num_nextn_predict_layers": 1, "tie_word_embeddings": False, "bos_token_id": 0, "eos_token_id": 1,
        "pad_token_id": 2, "expert_dtype": "fp4",
    }  # fmt: skip
    if drafter:
        found |= {
            "dspark_block_size": 5, "dspark_noise_token_id": 511, "dspark_target_layer_ids": [3, 4, 5],
            "dspark_markov_rank": 32,
        }  # fmt: skip
    return found


def write_tokenizer(folder: Path, *, template: str | None = "{{ messages }}") -> None:
    """Writes the golden vocabulary as `tokenizer.json` and `tokenizer_config.json`."""
    fields = {key: field.contents() for key, field in gguf.GGUFReader(TARGET).fields.items()}
    tokens, types = fields["tokenizer.ggml.tokens"], fields["tokenizer.ggml.token_type"]
    splits = [{"type": "Split", "pattern": {"Regex": rule}, "behavior": "Isolated", "invert": False} for rule in SPLITS]
    added = [place for place, kind in enumerate(types) if kind in (3, 4)]
    tokenizer = {
        "added_tokens": [{"id": place, "content": tokens[place], "special": types[place] == 3} for place in added],
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [*splits, {"type": "ByteLevel"}]},
        "model": {
            "type": "BPE",
            "vocab": {token: place for place, token in enumerate(tokens) if types[place] == 1},
            "merges": [merge.split(" ") for merge in fields["tokenizer.ggml.merges"]],
        },
    }
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer))
    settings = {"add_bos_token": True, "bos_token": {"content": "<|bos|>"}, "eos_token": "<|eos|>"}
    if template is not None:
        settings["chat_template"] = template
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
