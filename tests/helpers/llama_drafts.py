"""Drafts with llama.cpp's draft-dspark at temperature 0, at every position of a text. Runs in a process of its own:

    python llama_drafts.py TARGET DRAFTER GIVEN FOUND [RING]

GIVEN is an npz of token sequences. For each, FOUND gets under the same name what is drafted at every position n from 1
on, with tokens[:n] in the state and tokens[n] for anchor: [positions, block] of `DRAFTED`.

llama.cpp drafts in its library of common code, which llama-cpp-python does not bring. But that only calls what the main
library exports: the inputs of some of the target's layers are its features, a batch of them fills the drafter's cache,
and a batch of the anchor and noise tokens gives logits, in which the Markov chain along the likeliest tokens is done.

In llama.cpp, row j of a block sees the context positions that are nearer than the window to that row. In DeepSeek's
code all rows see the last window of positions before the block. RING, the window's length, makes llama.cpp do that:
with a window too wide to hide anything, and a cache from which older positions are removed.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from typing import Any

import llama_cpp as llama
import numpy as np

POSITIONS, UNSUITABLE = 1024, 77
DRAFTED = [("token", "i4"), ("confidence", "f4")]
Pointer, Floats = ctypes.c_void_p, ctypes.POINTER(ctypes.c_float)


def exported(name: str, result: Any, *arguments: Any) -> Callable[..., Any]:
    """A function of llama.cpp's staging interface (llama-ext.h), which is C++: `name` is mangled."""
    try:
        function = getattr(llama.llama_cpp._lib, name)
    except AttributeError:
        print(f"llama-cpp-python {llama.__version__} does not export {name}: its drafts cannot be had", file=sys.stderr)
        sys.exit(UNSUITABLE)
    function.restype, function.argtypes = result, arguments
    return function


extract = exported(
    "_Z30llama_set_embeddings_layer_inpP13llama_contextjb", None, Pointer, ctypes.c_uint32, ctypes.c_bool
)
extracted = exported("_Z30llama_get_embeddings_layer_inpP13llama_contextj", Floats, Pointer, ctypes.c_uint32)
taps = exported("_Z28llama_model_target_layer_idsPK11llama_model", ctypes.POINTER(ctypes.c_int32), Pointer)
taps_count = exported("_Z30llama_model_target_layer_ids_nPK11llama_model", ctypes.c_uint32, Pointer)
give_confidence = exported(
    "_Z26llama_set_embeddings_nextnP13llama_contextbb", None, Pointer, ctypes.c_bool, ctypes.c_bool
)
confidence = exported("_Z26llama_get_embeddings_nextnP13llama_context", Floats, Pointer)


def load(path: str, window: int | None = None) -> Any:
    """A model; `window` is for a drafter, in place of its own."""
    settings = llama.llama_model_default_params()
    settings.n_gpu_layers = 0
    settings.use_extra_bufts = False  # AMX would round the weights anew
    overrides = (llama.llama_model_kv_override * 2)()  # ends with an empty key
    if window is not None:
        overrides[0].key, overrides[0].value.val_i64 = b"dflash.attention.sliding_window", window
        settings.kv_overrides = overrides
    model = llama.llama_model_load_from_file(path.encode(), settings)
    assert model, f"{path}: not loaded"
    return model


def open_context(model: Any, target: Any = None) -> Any:
    """A drafter's needs its target's: it borrows the embedding and the output head."""
    settings = llama.llama_context_default_params()
    settings.n_ctx = settings.n_batch = settings.n_ubatch = POSITIONS
    settings.n_threads = settings.n_threads_batch = 1
    settings.type_k = settings.type_v = 0  # F32
    settings.flash_attn_type = 0  # off
    settings.ctx_other = target
    context = llama.llama_init_from_model(model, settings)
    assert context, "no context"
    return context


def forward(context: Any, first: int, rows: np.ndarray, wanted: bool = True) -> None:
    """Evaluates tokens [rows], or a drafter's features [rows, taps * hidden], at the positions from `first` on."""
    batch = llama.llama_batch_init(len(rows), rows[0].size if rows.ndim == 2 else 0, 1)
    batch.n_tokens = len(rows)
    given = batch.embd if rows.ndim == 2 else batch.token
    np.ctypeslib.as_array(given, rows.shape)[:] = rows
    for row in range(len(rows)):
        batch.pos[row], batch.logits[row] = first + row, wanted
        batch.n_seq_id[row], batch.seq_id[row][0] = 1, 0
    failed = llama.llama_decode(context, batch)
    llama.llama_batch_free(batch)
    assert not failed, f"not evaluated: {failed}"


class Pair:
    """A target and its drafter, beginning each sequence anew."""

    def __init__(self, target: str, drafter: str, ring: int | None) -> None:
        self.ring = ring
        models = load(target), load(drafter, None if ring is None else 2 * POSITIONS)
        self.target = open_context(models[0])
        self.drafter = open_context(models[1], self.target)
        llama.llama_set_causal_attn(self.drafter, False)  # the rows of a block see each other
        give_confidence(self.drafter, True, True)
        self.taps = taps(models[1])[: taps_count(models[1])]
        for layer in self.taps:
            extract(self.target, layer, True)
        self.hidden = llama.llama_model_n_embd(models[0])
        target_words, drafter_words = (llama.llama_model_get_vocab(model) for model in models)
        self.vocabulary, noise = llama.llama_vocab_n_tokens(target_words), llama.llama_vocab_mask(drafter_words)
        size = ctypes.create_string_buffer(32)
        llama.llama_model_meta_val_str(models[1], b"dflash.block_size", size, 32)
        self.noise = np.full(int(size.value) - 1, noise)

    def drafts(self, tokens: np.ndarray) -> np.ndarray:
        """Returns what is drafted at every position but the first, [positions, block] of DRAFTED."""
        for context in (self.target, self.drafter):
            llama.llama_memory_clear(llama.llama_get_memory(context), True)
        features = self.features(tokens[:-1])
        blocks = []
        for position, anchor in enumerate(tokens[1:], 1):
            forward(self.drafter, position - 1, features[position - 1 : position], wanted=False)
            if self.ring is not None:
                self.remove(0, max(0, position - self.ring))
            blocks.append(self.block(position, anchor))
            self.remove(position, -1)
        return np.array(blocks)

    def features(self, tokens: np.ndarray) -> np.ndarray:
        """Returns the features of the tokens, [len(tokens), taps * hidden]."""
        forward(self.target, 0, tokens)
        shape = len(tokens), self.hidden
        return np.concatenate([np.ctypeslib.as_array(extracted(self.target, i), shape) for i in self.taps], axis=1)

    def block(self, position: int, anchor: int) -> np.ndarray:
        """Returns what is drafted after the anchor at `position`, [block] of DRAFTED."""
        forward(self.drafter, position, np.append(anchor, self.noise))
        found = np.empty(len(self.noise) + 1, DRAFTED)
        logits = np.ctypeslib.as_array(llama.llama_get_logits(self.drafter), (len(found), self.vocabulary))
        found["token"] = logits.argmax(axis=1)
        repeated = np.ctypeslib.as_array(confidence(self.drafter), (len(found), self.hidden))
        found["confidence"] = repeated[:, 0]
        return found

    def remove(self, begin: int, end: int) -> None:
        """Removes positions begin..end-1 of the drafter's cache; -1 is all that follow."""
        assert llama.llama_memory_seq_rm(llama.llama_get_memory(self.drafter), 0, begin, end)


def main(target: str, drafter: str, given: str, found: str, ring: str | None = None) -> None:
    llama.llama_backend_init()
    pair = Pair(target, drafter, None if ring is None else int(ring))
    with np.load(given) as sequences:
        drafts = {name: pair.drafts(sequences[name]) for name in sequences.files}
    np.savez(found, **drafts)


if __name__ == "__main__":
    main(*sys.argv[1:])
