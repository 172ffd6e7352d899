"""Writes small random targets with quantised tensors, quantised by the ggml that the package carries."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import gguf
import numpy as np
from gguf import GGMLQuantizationType as Type

from ds4py import _native

LAYERS, HIDDEN, HEADS, HEAD_SIZE, RANK, GROUPS, GROUP_RANK = 4, 256, 4, 128, 256, 2, 128
EXPERTS, USED, WIDTH, INDEX_HEADS, INDEX_SIZE, STREAMS = 8, 2, 256, 32, 128, 4
RATIOS = (0, 4, 128, 4)
VOCAB = 512

_ggml = ctypes.CDLL(str(next((Path(_native.__file__).parent / "lib").glob("libggml-base.*"))))
_ggml.ggml_quantize_chunk.restype = ctypes.c_size_t


def quantise(x: np.ndarray, kind: Type) -> np.ndarray:
    """Returns rows of x as blocks of `kind`: uint8 [..., bytes of a row]."""
    rows, columns = int(np.prod(x.shape[:-1])), x.shape[-1]
    block, size = gguf.GGML_QUANT_SIZES[kind]
    out = np.empty((rows, columns // block * size), np.uint8)
    importance = np.ones(columns, np.float32)
    pointer = ctypes.c_void_p
    _ggml.ggml_quantize_chunk(
        ctypes.c_int(kind),
        x.astype(np.float32).ctypes.data_as(pointer),
        out.ctypes.data_as(pointer),
        ctypes.c_int64(0),
        ctypes.c_int64(rows),
        ctypes.c_int64(columns),
        importance.ctypes.data_as(pointer),
    )
    return out.reshape(*x.shape[:-1], -1)


class _Writer:
    """Makes random tensors by role; `as_f32` writes the values that the quantised tensors stand for."""

    def __init__(self, path: Path, experts: Type, dense: Type, as_f32: bool) -> None:
        self.file = gguf.GGUFWriter(path, "deepseek4")
        self.experts, self.dense, self.as_f32 = experts, dense, as_f32
        self.rng = np.random.default_rng(5)

    def vector(self, name: str, *shape: int, std: float = 0.1, mean: float = 0.0) -> None:
        self.file.add_tensor(name, (self.rng.standard_normal(shape) * std + mean).astype(np.float32))

    def matrix(self, name: str, *shape: int, kind: Type | None = None, std: float | None = None) -> None:
        kind = self.dense if kind is None else kind
        x = (self.rng.standard_normal(shape) * (std or 1.5 / np.sqrt(shape[-1]))).astype(np.float32)
        if kind in (Type.F32, Type.F16):  # numpy has them
            self.file.add_tensor(name, x.astype(np.float16 if kind == Type.F16 else np.float32))
        elif self.as_f32:
            self.file.add_tensor(name, gguf.dequantize(quantise(x, kind), kind).reshape(shape))
        else:
            self.file.add_tensor(name, quantise(x, kind), raw_dtype=kind)


def _hyperparameters(file: gguf.GGUFWriter) -> None:
    numbers = {
        "context_length": 4096, "embedding_length": HIDDEN, "block_count": LAYERS, "attention.head_count": HEADS,
        "attention.head_count_kv": 1, "attention.key_length": HEAD_SIZE, "attention.value_length": HEAD_SIZE,
        "rope.dimension_count": 64, "attention.q_lora_rank": RANK, "attention.output_group_count": GROUPS,
        "attention.output_lora_rank": GROUP_RANK, "attention.sliding_window": 32, "expert_count": EXPERTS,
        "expert_used_count": USED, "expert_shared_count": 1, "expert_feed_forward_length": WIDTH,
        "expert_gating_func": 4, "hash_layer_count": 1, "attention.indexer.head_count": INDEX_HEADS,
        "attention.indexer.key_length": INDEX_SIZE, "attention.indexer.top_k": 8, "hyper_connection.count": STREAMS,
        "hyper_connection.sinkhorn_iterations": 20, "rope.scaling.original_context_length": 1024,
    }  # fmt: skip
    floats = {
        "rope.freq_base": 1e4, "attention.compress_rope_freq_base": 1.6e5, "rope.scaling.factor": 4.0,
        "attention.layer_norm_rms_epsilon": 1e-6, "hyper_connection.epsilon": 1e-6, "expert_weights_scale": 1.5,
    }  # fmt: skip
    for key, number in numbers.items():
        file.add_uint32(f"deepseek4.{key}", number)
    for key, value in floats.items():
        file.add_float32(f"deepseek4.{key}", value)
    file.add_string("deepseek4.rope.scaling.type", "yarn")
    file.add_bool("deepseek4.expert_weights_norm", True)
    file.add_array("deepseek4.attention.compress_ratios", list(RATIOS))
    file.add_array("deepseek4.swiglu_clamp_exp", [10.0] * LAYERS)


def _attention(w: _Writer, block: str, ratio: int) -> None:
    w.vector(block + "attn_norm.weight", HIDDEN, mean=1)
    w.vector(block + "attn_sinks.weight", HEADS, std=0.5)
    w.matrix(block + "attn_q_a.weight", RANK, HIDDEN)
    w.vector(block + "attn_q_a_norm.weight", RANK, mean=1)
    w.matrix(block + "attn_q_b.weight", HEADS * HEAD_SIZE, RANK)
    w.matrix(block + "attn_kv.weight", HEAD_SIZE, HIDDEN)
    w.vector(block + "attn_kv_a_norm.weight", HEAD_SIZE, mean=1)
    w.matrix(block + "attn_output_a.weight", GROUP_RANK * GROUPS, HEADS * HEAD_SIZE // GROUPS)
    w.matrix(block + "attn_output_b.weight", HIDDEN, GROUPS * GROUP_RANK)
    if ratio:
        _compressor(w, block + "attn_compressor", ratio, HEAD_SIZE)
    if ratio == 4:
        w.matrix(block + "indexer.attn_q_b.weight", INDEX_HEADS * INDEX_SIZE, RANK)
        w.matrix(block + "indexer.proj.weight", INDEX_HEADS, HIDDEN, kind=Type.F16)
        _compressor(w, block + "indexer_compressor", 4, INDEX_SIZE)


def _compressor(w: _Writer, name: str, ratio: int, size: int) -> None:
    width = size * (2 if ratio == 4 else 1)
    w.matrix(f"{name}_kv.weight", width, HIDDEN)
    w.matrix(f"{name}_gate.weight", width, HIDDEN)
    w.matrix(f"{name}_ape.weight", ratio, width, kind=Type.F32, std=0.5)
    w.vector(f"{name}_norm.weight", size, mean=1)


def _moe(w: _Writer, block: str, layer: int, vocab: int) -> None:
    w.vector(block + "ffn_norm.weight", HIDDEN, mean=1)
    w.matrix(block + "ffn_gate_inp.weight", EXPERTS, HIDDEN, kind=Type.F32)
    if layer == 0:
        table = np.argsort(w.rng.random((vocab, EXPERTS)), axis=1)[:, :USED]
        w.file.add_tensor(block + "ffn_gate_tid2eid.weight", table.astype(np.int32))
    else:
        w.vector(block + "exp_probs_b.bias", EXPERTS, std=0.2)
    for role, shape in (("gate", (WIDTH, HIDDEN)), ("up", (WIDTH, HIDDEN)), ("down", (HIDDEN, WIDTH))):
        w.matrix(f"{block}ffn_{role}_exps.weight", EXPERTS, *shape, kind=w.experts)
        w.matrix(f"{block}ffn_{role}_shexp.weight", *shape)


def _hyper_connection(w: _Writer, name: str, mix: int, scales: int) -> None:
    w.matrix(f"{name}_fn.weight", mix, STREAMS * HIDDEN, kind=Type.F32, std=0.03)
    w.vector(f"{name}_base.weight", mix, std=0.3)
    w.vector(f"{name}_scale.weight", scales, mean=0.7)


def write_target(
    path: Path,
    experts: Type,
    dense: Type = Type.Q8_0,
    *,
    as_f32: bool = False,
    tokenizer: Mapping[str, Any] | None = None,
) -> Path:
    """Writes a random target; with `as_f32` the same values in F32. Without a tokenizer it takes ids alone."""
    w = _Writer(path, experts, dense, as_f32)
    _hyperparameters(w.file)
    vocab = VOCAB
    if tokenizer is None:
        w.file.add_tokenizer_model("none")
    else:
        vocab = len(tokenizer["tokenizer.ggml.tokens"])
        for key, value in tokenizer.items():
            if key.startswith("tokenizer."):
                w.file.add_key_value(key, value, *_gguf_type(value))
    w.matrix("token_embd.weight", vocab, HIDDEN, std=1.0)
    w.matrix("output.weight", vocab, HIDDEN)
    w.vector("output_norm.weight", HIDDEN, mean=1)
    _hyper_connection(w, "output_hc", STREAMS, 1)
    for layer, ratio in enumerate(RATIOS):
        block = f"blk.{layer}."
        _attention(w, block, ratio)
        _moe(w, block, layer, vocab)
        _hyper_connection(w, block + "hc_attn", (2 + STREAMS) * STREAMS, 3)
        _hyper_connection(w, block + "hc_ffn", (2 + STREAMS) * STREAMS, 3)
    w.file.write_header_to_file()
    w.file.write_kv_data_to_file()
    w.file.write_tensors_to_file()
    w.file.close()
    return path


def _gguf_type(value: Any) -> tuple[gguf.GGUFValueType, ...]:
    if isinstance(value, list):
        kind = gguf.GGUFValueType.STRING if isinstance(value[0], str) else gguf.GGUFValueType.INT32
        return gguf.GGUFValueType.ARRAY, kind
    return (gguf.GGUFValueType.UINT32 if type(value) is int else gguf.GGUFValueType.get_type(value),)
