"""Exports the trained pair as a checkpoint in DeepSeek's names, and through `deepseek4-quantize` as GGUF files."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from safetensors.torch import save_file
from torch import Tensor

from ds4py.converter.cli import main as quantize

from .config import BOS, EOS, NOISE, PAD, DraftShape, Shape
from .model.drafter import Drafter
from .model.target import Target

RENAMED = {
    "embed": "embed.weight",
    "head.weight": "head.weight",
    "ffn.bias": "ffn.gate.bias",
    "ffn.table": "ffn.gate.tid2eid",
    "ffn.shared2.weight": "ffn.shared_experts.w2.weight",
    "main_proj.weight": "main_proj.weight",
    "markov_w1": "markov_head.markov_w1.weight",
    "markov_w2": "markov_head.markov_w2.weight",
    "confidence": "confidence_head.proj.weight",
}
"""Names of modules, or their endings in a layer, with DeepSeek's names for them."""


def write_checkpoint(folder: Path, target: Target, drafter: Drafter, data: Path) -> None:
    """Writes shards, `config.json` and the tokenizer's files, which are copied from `data`."""
    folder.mkdir(parents=True, exist_ok=True)
    tensors = dict(target_tensors(target))
    stages = dict(drafter_tensors(drafter))
    save_file(tensors, folder / "model-00001-of-00002.safetensors")
    save_file(stages, folder / "model-00002-of-00002.safetensors")
    files = dict.fromkeys(tensors, "model-00001-of-00002.safetensors")
    files |= dict.fromkeys(stages, "model-00002-of-00002.safetensors")
    (folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": files}))
    (folder / "config.json").write_text(json.dumps(config(target.shape, drafter.draft), indent=2))
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copyfile(data / name, folder / name)


def convert(folder: Path, target: Path, drafter: Path, preset: str, name: str) -> None:
    """Runs `deepseek4-quantize` on the checkpoint. Raises SystemExit if that fails."""
    flags = ["--drafter", str(drafter), "--preset", preset, "--name", name, "--overwrite", "--quiet"]
    code = quantize([str(folder), str(target), *flags])
    if code:
        raise SystemExit(code)


def target_tensors(target: Target) -> Iterator[tuple[str, Tensor]]:
    """Yields the target's tensors under DeepSeek's names."""
    for name, tensor in target.state_dict().items():
        if name.startswith("layers."):
            _, number, rest = name.split(".", 2)
            yield from layer_tensors(f"layers.{number}.", rest.replace("attn.project.", "attn."), tensor)
        else:
            yield renamed(name), tensor.contiguous()


def drafter_tensors(drafter: Drafter) -> Iterator[tuple[str, Tensor]]:
    """Yields the drafter's tensors. Those outside the stages are stored with the first or the last stage."""
    last = drafter.draft.stages - 1
    for name, tensor in drafter.state_dict().items():
        if name.startswith("stages."):
            _, number, rest = name.split(".", 2)
            yield from layer_tensors(f"mtp.{number}.", rest, tensor)
        else:
            yield f"mtp.{0 if name.startswith('main_') else last}.{renamed(name)}", tensor.contiguous()


def layer_tensors(prefix: str, name: str, tensor: Tensor) -> Iterator[tuple[str, Tensor]]:
    """Yields the tensors that one of a layer's becomes, with each expert, gate and up apart."""
    if name == "ffn.w13":
        for expert, (gate, up) in enumerate(both.chunk(2) for both in tensor):
            yield f"{prefix}ffn.experts.{expert}.w1.weight", gate.contiguous()
            yield f"{prefix}ffn.experts.{expert}.w3.weight", up.contiguous()
    elif name == "ffn.w2":
        for expert, down in enumerate(tensor):
            yield f"{prefix}ffn.experts.{expert}.w2.weight", down.contiguous()
    elif name == "ffn.shared13.weight":
        gate, up = tensor.chunk(2)
        yield f"{prefix}ffn.shared_experts.w1.weight", gate.contiguous()
        yield f"{prefix}ffn.shared_experts.w3.weight", up.contiguous()
    else:
        yield prefix + renamed(name), tensor.contiguous()


def renamed(name: str) -> str:
    """Returns DeepSeek's name, such as `hc_attn_fn` for `hc_attn.fn`."""
    return RENAMED.get(name) or name.replace("hc_attn.", "hc_attn_").replace("hc_ffn.", "hc_ffn_").replace(
        "hc_head.", "hc_head_"
    )


def config(shape: Shape, draft: DraftShape) -> dict[str, Any]:
    """Returns `config.json` with the published keys."""
    return {
        "architectures": ["DeepseekV4ForCausalLM"], "model_type": "deepseek_v4", "torch_dtype": "float32",
        "vocab_size": shape.vocab, "hidden_size": shape.hidden, "num_hidden_layers": shape.layers,
        "max_position_embeddings": shape.context, "num_attention_heads": shape.heads, "num_key_value_heads": 1,
        "head_dim": shape.head_size, "qk_rope_head_dim": shape.rope_size, "q_lora_rank": shape.query_rank,
        "o_groups": shape.output_groups, "o_lora_rank": shape.output_rank, "sliding_window": shape.window,
        "compress_ratios": [*shape.ratios, *[0] * draft.stages],
        "rope_theta": shape.rope_base, "compress_rope_theta": shape.compress_rope_base,
        "index_n_heads": shape.index_heads, "index_head_dim": shape.index_size, "index_topk": shape.index_top_k,
        "n_routed_experts": shape.experts, "num_experts_per_tok": shape.experts_used, "n_shared_experts": 1,
        "moe_intermediate_size": shape.expert_width, "num_hash_layers": shape.hash_layers,
        "scoring_func": "sqrtsoftplus", "topk_method": "noaux_tc", "norm_topk_prob": True,
        "routed_scaling_factor": shape.routed_scale, "swiglu_limit": shape.clamp, "hidden_act": "silu",
        "hc_mult": shape.streams, "hc_sinkhorn_iters": shape.sinkhorn_iterations, "hc_eps": shape.epsilon,
        "rms_norm_eps": shape.epsilon, "num_nextn_predict_layers": draft.stages, "tie_word_embeddings": False,
        "bos_token_id": BOS, "eos_token_id": EOS, "pad_token_id": PAD,
        "dspark_block_size": draft.block, "dspark_noise_token_id": NOISE, "dspark_target_layer_ids": list(draft.taps),
        "dspark_markov_rank": draft.rank,
    }  # fmt: skip
