"""What the metadata of drafters say, in every spelling, and what is refused in them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import gguf_tools as tools
import pytest
from drafter_files import BLOCK, NOISE, RANK, TAPS, DrafterFile, array, golden_numbers, numbers, tiny_target, u32
from gguf import GGUFValueType as V

from ds4py import _native
from ds4py.errors import FormatError

pytestmark = pytest.mark.fast

C2, B = "deepseek4.dspark.", "deepseek4-dflash-draft.dflash."
SCALARS = {f"{C2}target_layer_ids.{i}": u32(tap) for i, tap in enumerate(TAPS)}
# How else the same can be said: contract, keys that go, keys that come.
SAME: dict[str, tuple[str, str, dict[str, Any]]] = {
    "underscores": ("ds4", r"dspark\.(block_size|markov_rank|noise_token_id|target_layer_ids)", {
        "deepseek4.dspark_block_size": u32(BLOCK), "deepseek4.dspark_markov_rank": u32(RANK),
        "deepseek4.dspark_noise_token_id": u32(NOISE), "deepseek4.dspark_target_layer_ids": array(TAPS),
    }),
    "array and scalars": ("dspark-only", "", {C2 + "target_layer_ids": array(TAPS)}),
    "n_layers": ("ds4", r"dspark\.stage_count", {"dspark.n_layers": u32(3)}),
    "no stage count": ("ds4", r"dspark\.stage_count", {}),
    "no rank": ("relayout", r".*markov_rank", {}),
    "lucebox's other taps": ("lucebox", r".*capture_layer_ids", {B + "target_layer_ids": array(TAPS)}),
    "lucebox's other name": ("lucebox", r".*", {
        "general.architecture": (V.STRING, "deepseek_v4_flash_dspark_draft"),
        "deepseek_v4_flash_dspark_draft.dflash.block_size": u32(BLOCK),
        "deepseek_v4_flash_dspark_draft.dflash.mask_token_id": u32(NOISE),
        "deepseek_v4_flash_dspark_draft.dflash.capture_layer_ids": array(TAPS),
    }),
    "signed and long integers": ("ds4", r"dspark\.(block_size|noise_token_id|target_layer_ids)", {
        "dspark.block_size": (V.UINT64, BLOCK), "dspark.noise_token_id": (V.INT64, NOISE),
        "dspark.target_layer_ids": array(TAPS, V.INT64),
    }),
    "small integers": ("ds4", r"dspark\.(block_size|target_layer_ids)", {
        "dspark.block_size": (V.INT8, BLOCK), "dspark.target_layer_ids": array(TAPS, V.UINT8),
    }),
    "said outright": ("dflash", "", {
        "dflash.sample_from_anchor": (V.BOOL, True), "dflash.has_confidence_head": (V.BOOL, True),
        "dflash.attention.causal": (V.BOOL, False),
    }),
    "one clamp for all": ("dflash", r"dflash\.swiglu.*", {"dflash.swiglu_clamp_exp": (V.FLOAT32, 1.5)}),
    "clamps of more layers, the stages last": ("dspark-only", r".*swiglu_clamp_exp", {
        "deepseek4.swiglu_clamp_exp": ((V.ARRAY, V.FLOAT32), [7.0, 7.0, 7.0, 1.5, 1.5, 1.5]),
    }),
    "fewer clamps, all equal": ("dspark-only", r".*swiglu_clamp_exp", {
        "deepseek4.swiglu_clamp_exp": ((V.ARRAY, V.FLOAT32), [1.5, 1.5]),
    }),
    "a template's RoPE bases the other way": ("dspark-only", r".*compress_rope_freq_base", {
        "deepseek4.rope.freq_base": (V.FLOAT32, 1.6e5), "deepseek4.rope.freq_base_swa": (V.FLOAT32, 1e4),
    }),
    "a template's mask token": ("dspark-only", "", {"tokenizer.ggml.mask_token_id": u32(2)}),
    "a template of more experts": ("dspark-only", "", {"deepseek4.expert_count": u32(64)}),
}  # fmt: skip


@pytest.mark.parametrize("contract, gone, keys", SAME.values(), ids=SAME)
def test_spellings_that_say_the_same(tmp_path: Path, contract: str, gone: str, keys: dict[str, Any]) -> None:
    draft = DrafterFile(contract)
    # A pattern of everything means the keys alone.
    draft.keys = {key: value for key, value in draft.keys.items() if not re.fullmatch(gone, key)} | keys
    assert numbers(draft.load(tmp_path)) == golden_numbers()


REFUSED: dict[str, tuple[str, str, dict[str, Any], str]] = {
    "no block": ("dflash", "dflash.block_size", {}, "nowhere how long a block .*'dflash.block_size'.*'dspark.block_si"),
    "no noise": ("dflash", "tokenizer.ggml.mask_token_id", {}, "nowhere which token .*'tokenizer.ggml.mask_token_id'"),
    "no noise but the template's": (
        "dspark-only", C2 + "noise_token_id", {"tokenizer.ggml.mask_token_id": u32(NOISE)}, "nowhere which token",
    ),
    "no taps": ("ds4", "dspark.target_layer_ids", {}, "nowhere which target layers .*'dspark.target_layer_ids'"),
    "block 0": ("dflash", "", {"dflash.block_size": u32(0)}, "block_size' is 0, wanted 1 to 16"),
    "block 17": ("dflash", "", {"dflash.block_size": u32(17)}, "block_size' is 17, wanted 1 to 16"),
    "a block of the anchor": (
        "dflash", "", {"dflash.sample_from_anchor": (V.BOOL, False), "dflash.block_size": u32(1)},
        "block_size' is 1, wanted 2 to 17",
    ),
    "negative block": ("ds4", "", {"dspark.block_size": (V.INT32, -5)}, "block_size' is -5, wanted 1 to 16"),
    "block is text": ("ds4", "", {"dspark.block_size": (V.STRING, "5")}, "the string '5', wanted an integer"),
    "two blocks": (
        "ds4", "", {"deepseek4.dspark.block_size": u32(7)}, "'dspark.block_size' is 5, wanted 7, as key 'deepseek4.dsp",
    ),
    "noise of 2^31": ("ds4", "", {"dspark.noise_token_id": u32(2**31)}, "is 2147483648, wanted 0 to 2147483647"),
    "negative noise": ("ds4", "", {"dspark.noise_token_id": (V.INT64, -1)}, "noise_token_id' is -1, wanted 0 to"),
    "llama.cpp's taps from 0": ("dflash", "", {"dflash.target_layers": array([0, 1, 2])}, "increasing layers from 1"),
    "taps in another order": (
        "ds4", "", {"dspark.target_layer_ids": array([4, 3, 5])}, r"is \[4, 3, 5\], wanted increasing layers from 0",
    ),
    "a tap twice": ("ds4", "", {"dspark.target_layer_ids": array([3, 3, 5])}, "wanted increasing layers"),
    "a negative tap": ("ds4", "", {"dspark.target_layer_ids": array([-1, 3, 5], V.INT32)}, "wanted increasing layers"),
    "nine taps": ("ds4", "", {"dspark.target_layer_ids": array(list(range(9)))}, "is 9 layers, wanted 1 to 8"),
    "two taps": ("ds4", "", {"dspark.target_layer_ids": array([3, 4])}, r"shape \(192, 64\), wanted \(128, 64\)"),
    "half a tap": (
        "ds4", "", {"dspark.target_layer_ids": ((V.ARRAY, V.FLOAT32), [3.0, 4.5, 5.0])}, "wanted whole numbers",
    ),
    "scalars of a gap": ("dspark-only", C2 + "target_layer_ids.1", {}, r"shape \(192, 64\), wanted \(64, 64\)"),
    "scalars and another array": (
        "dspark-only", "", {C2 + "target_layer_ids": array([2, 4, 5])}, r"wanted \[2, 4, 5\], as key",
    ),
    "another number of stages": ("ds4", "", {"dspark.stage_count": u32(1)}, "has 3 draft stages, .* says 1"),
    "llama.cpp's number of stages": ("dflash", "", {"dflash.block_count": u32(4)}, "has 3 draft stages, .* says 4"),
    "another rank": ("relayout", "", {C2 + "markov_rank": u32(64)}, "is of rank 32, but the metadata says 64"),
    "a rank of 0 beside a head": ("ds4", "", {"dspark.markov_rank": u32(0)}, "is of rank 32, but the metadata says 0"),
    "experts": ("relayout", "", {C2 + "expert_count": u32(8)}, r"shape \(64, 16\), wanted \(64, 8\)"),
    "llama.cpp's experts": ("dflash", "", {"dflash.expert_count": u32(8)}, r"shape \(64, 16\), wanted \(64, 8\)"),
    "confidence denied": (
        "dflash", "", {"dflash.has_confidence_head": (V.BOOL, False)}, "'conf_proj.weight' is there, .* there is no",
    ),
    "confidence of another width": ("lucebox", "", {B + "dspark.confidence_dim": u32(64)}, "rows of 96, .* says 64"),
    "causal": ("dflash", "", {"dflash.attention.causal": (V.BOOL, True)}, "causal' is true, wanted false"),
    "gating": ("dflash", "", {"dflash.expert_gating_func": u32(2)}, "gating_func' is 2, wanted 4"),
    "more used than there are": ("dflash", "", {"dflash.expert_used_count": u32(17)}, "is 17, wanted 1 to 16"),
    "value size": ("dflash", "", {"dflash.attention.value_length": u32(128)}, "value_length' is 128, wanted 256"),
    "groups": ("dflash", "", {"dflash.attention.output_group_count": u32(3)}, "3 output groups, wanted a divisor"),
    "clamps too short": (
        "dflash", "", {"dflash.swiglu_clamp_exp": ((V.ARRAY, V.FLOAT32), [1.5, 2.0])},
        "array of 2, wanted an entry for each of 3 stages",
    ),
    "a clamp of NaN": (
        "dflash", "", {"dflash.swiglu_clamp_exp": (V.FLOAT32, float("nan"))}, "clamp_exp' is -?nan in layer 0",
    ),
    "hidden size": ("dflash", "", {"dflash.embedding_length": u32(128)}, r"shape \(192, 64\), wanted \(384, 128\)"),
}  # fmt: skip


@pytest.mark.parametrize("contract, gone, keys, message", REFUSED.values(), ids=REFUSED)
def test_wrong_metadata_is_named(tmp_path: Path, contract: str, gone: str, keys: dict[str, Any], message: str) -> None:
    draft = DrafterFile(contract, keys=keys)
    if gone:
        del draft.keys[gone]
    with pytest.raises(FormatError) as error:
        draft.load(tmp_path)
    assert re.search(message, str(error.value)), str(error.value)
    assert str(error.value).startswith(str(tmp_path / "drafter.gguf"))


def test_confidence_that_should_be_there(tmp_path: Path) -> None:
    draft = DrafterFile(keys={"dflash.has_confidence_head": (V.BOOL, True)}).remove(r"conf_proj\..*")
    with pytest.raises(FormatError, match=r"'conf_proj\.weight' is missing, .* there is a confidence head"):
        draft.load(tmp_path)


@pytest.mark.parametrize(
    "key, message",
    [("target_layers", "0 layers, wanted 1 to 8"), ("swiglu_clamp_exp", "array of 0, wanted an entry")],
)
def test_empty_arrays(tmp_path: Path, key: str, message: str) -> None:
    """No writer makes one, so a string of the same length is overwritten."""
    path = DrafterFile(keys={"dflash." + key: (V.STRING, "NONE")}).write(tmp_path / "drafter.gguf")
    string, empty = tools.u32(tools.STRING) + tools.string(b"NONE"), tools.u32(tools.ARRAY) + tools.array(tools.U32, 0)
    path.write_bytes(path.read_bytes().replace(string, empty))
    with pytest.raises(FormatError, match=f"{key}' is .*{message}"):
        _native.Drafter.load(str(path), tiny_target())
