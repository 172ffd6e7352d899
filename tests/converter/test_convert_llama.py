"""llama.cpp loads what is converted and computes the same from it; skipped where llama-cpp-python is not installed.

Only F32 files are compared number by number: with quantised weights llama.cpp quantises the activations too, and on
models as tiny as these a rounding sends a token to other experts. The quantised files are loaded, and have to give
finite logits. A drafter is loaded as a model, but does not run by itself: test_pair_llama.py drafts with one beside its
target. Of the contracts only dflash is llama.cpp's. Seen with llama-cpp-python 0.3.36.
"""

from __future__ import annotations

from pathlib import Path

import checkpoints
import llama
import numpy as np
import pytest
from converting import convert, tensors
from device import open_engine
from paths import GOLDEN

pytestmark = llama.installed

LOAD = """
import ctypes, sys
import llama_cpp as llama
import numpy as np

llama.llama_backend_init()
settings = llama.llama_model_default_params()
settings.n_gpu_layers = 0
settings.use_extra_bufts = False  # AMX would round the weights anew
model = llama.llama_model_load_from_file(sys.argv[1].encode(), settings)
assert model, "not loaded"
"""
DESCRIBE = """
name = ctypes.create_string_buffer(64)
llama.llama_model_meta_val_str(model, b"general.architecture", name, 64)
print(name.value.decode(), llama.llama_model_n_layer(model), llama.llama_model_n_params(model))
"""
EVALUATE = """
tokens = np.load(sys.argv[2])
rows, columns = len(tokens), llama.llama_vocab_n_tokens(llama.llama_model_get_vocab(model))
settings = llama.llama_context_default_params()
settings.n_ctx = settings.n_batch = settings.n_ubatch = 512
settings.n_threads = settings.n_threads_batch = 1
settings.type_k = settings.type_v = 0  # F32
settings.flash_attn_type = 0  # off
context = llama.llama_init_from_model(model, settings)
batch = llama.llama_batch_init(rows, 0, 1)
batch.n_tokens = rows
for row in range(rows):
    batch.token[row], batch.pos[row], batch.logits[row] = int(tokens[row]), row, 1
    batch.n_seq_id[row], batch.seq_id[row][0] = 1, 0
assert llama.llama_decode(context, batch) == 0, "not evaluated"
np.save(sys.argv[3], np.ctypeslib.as_array(llama.llama_get_logits(context), (rows, columns)))
"""


def llama_logits(path: Path, tokens: np.ndarray) -> np.ndarray:
    """Logits [positions, vocabulary] of llama.cpp with an F32 state."""
    given, found = path.with_suffix(".tokens.npy"), path.with_suffix(".logits.npy")
    np.save(given, tokens)
    llama.run("-c", LOAD + EVALUATE, path, given, found)
    logits: np.ndarray = np.load(found)
    return logits


@pytest.fixture(scope="module", params=["bf16", "fp8"])
def checkpoint(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The golden pair's shape in DeepSeek's names, in BF16 or in FP8 with FP4 experts, with a tokenizer."""
    folder = checkpoints.golden(request.param, drafter=True).write(tmp_path_factory.mktemp(request.param))
    checkpoints.write_tokenizer(folder)
    return folder


def test_checkpoint_of_transformers_gives_its_logits(tmp_path: Path) -> None:
    path = convert(GOLDEN / "hf", tmp_path / "target.gguf", "--preset", "f32")
    wanted = np.load(GOLDEN / "hf" / "logits.npz")
    found = llama_logits(path, wanted["tokens"])
    assert np.abs(found - wanted["logits"]).max() < 2e-4
    assert np.array_equal(found.argmax(axis=1), wanted["logits"].argmax(axis=1))


def test_checkpoint_of_deepseek_gives_our_logits(tmp_path: Path, checkpoint: Path) -> None:
    path = convert(checkpoint, tmp_path / "target.gguf", "--preset", "f32")
    tokens = np.random.default_rng(1).integers(3, 500, 300, np.int32)
    with open_engine(path, threads=1) as engine, engine.session(context=512, kv_dtype="f32") as session:
        wanted = session.evaluate(tokens)
    found = llama_logits(path, tokens)
    assert np.abs(found - wanted).max() < 2e-4
    assert np.array_equal(found.argmax(axis=1), wanted.argmax(axis=1))


@pytest.mark.parametrize("preset", ["mxfp4", "q8", "q4", "q2"])
def test_quantised_files_are_run(tmp_path: Path, checkpoint: Path, preset: str) -> None:
    path = convert(checkpoint, tmp_path / "target.gguf", "--preset", preset)
    assert np.isfinite(llama_logits(path, np.arange(3, 200, dtype=np.int32))).all()


def test_a_drafter_is_loaded(tmp_path: Path, checkpoint: Path) -> None:
    """All of its tensors have a place: llama.cpp refuses a file with one too many or too few."""
    path = convert(checkpoint, tmp_path / "drafter.gguf", "--dspark-only", "--preset", "f32")
    elements = sum(tensor.n_elements for tensor in tensors(path).values())
    assert llama.run("-c", LOAD + DESCRIBE, path).split() == ["dflash", "3", str(elements)]


def test_a_split_file_is_run(tmp_path: Path, checkpoint: Path) -> None:
    whole = convert(checkpoint, tmp_path / "whole.gguf", "--preset", "f32")
    shards = convert(checkpoint, tmp_path / "parts.gguf", "--preset", "f32", "--split", "1M")
    first = sorted(shards.parent.glob("parts-*.gguf"))[0]
    tokens = np.arange(3, 100, dtype=np.int32)
    assert np.array_equal(llama_logits(first, tokens), llama_logits(whole, tokens))
