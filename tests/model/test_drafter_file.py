"""Drafters in every contract give the same numbers; what else is handed over is refused by name."""

from __future__ import annotations

import re
from pathlib import Path

import gguf_tools as tools
import numpy as np
import pytest
from drafter_files import (
    BLOCK,
    CONFIDENCE,
    CONTRACTS,
    HIDDEN,
    NOISE,
    RANK,
    TAPS,
    W1,
    W2,
    DrafterFile,
    fields,
    golden_numbers,
    numbers,
    tiny_target,
    u32,
)
from gguf import GGMLQuantizationType as Type
from gguf import GGUFValueType as V

from ds4py import _native
from ds4py.errors import FormatError


def test_values_of_the_golden_drafter() -> None:
    golden = golden_numbers()
    assert {name: value for name, value in golden.items() if name != "stages"} == {
        "contract": None, "block": 5, "from_anchor": True, "noise": 511, "taps": [3, 4, 5], "rank": 32,
        "confidence": True, "confidence_markov": True,
    }  # fmt: skip
    own = {
        "layers": 3, "ratios": [0] * 3, "hash_layers": 0, "yarn": False, "yarn_factor": 1, "yarn_original_context": 0,
        "compress_rope_base": 1e4, "index_heads": 0, "index_size": 0, "index_top_k": 0,
        "expert_widths": [32] * 3, "clamp_routed": [1.5] * 3, "clamp_shared": [1.5] * 3,
    }  # fmt: skip
    assert golden["stages"] == fields(tiny_target().hyperparameters) | own


@pytest.mark.parametrize("contract", CONTRACTS)
def test_every_contract_gives_the_same(tmp_path: Path, contract: str) -> None:
    found = DrafterFile(contract).load(tmp_path)
    assert (found.contract, found.stages, found.block, found.rank) == (contract, 3, BLOCK, RANK)
    assert (found.taps, found.noise, found.confidence) == (TAPS, NOISE, True)
    assert numbers(found) == golden_numbers()
    assert found.bytes == sum(t.nbytes for t in found.file.tensors())
    weights = sorted((t.type, t.shape) for t in _native.GgufFile.open(tools.DRAFTER).tensors())
    bias = [("F32", (1,))] if contract == "lucebox" else []
    assert sorted((t.type, t.shape) for t in found.file.tensors()) == sorted(weights + bias)


@pytest.mark.parametrize("contract", CONTRACTS)
@pytest.mark.parametrize("kind", [Type.F16, Type.BF16, Type.Q8_0, Type.Q4_0, Type.Q2_K, Type.Q4_K, Type.Q6_K])
def test_heads_of_every_type(tmp_path: Path, contract: str, kind: Type) -> None:
    draft = DrafterFile(contract).with_heads(kind)
    found = draft.load(tmp_path)
    types = {tensor.name: tensor.type for tensor in found.file.tensors()}
    assert {types[draft.name(name)] for name in (W1, W2)} == {kind.name}
    assert found.rank == draft.tensors[W1].shape[1] and found.hyperparameters.confidence_markov
    widened = next(tensor for tensor in found.file.tensors() if tensor.name == draft.name(CONFIDENCE))
    rest = sum(tensor.nbytes for tensor in found.file.tensors()) - widened.nbytes
    assert found.bytes == rest + 4 * widened.shape[0], "the confidence head is computed with in F32"


def test_matrices_of_other_types(tmp_path: Path) -> None:
    draft = DrafterFile()
    for name in list(draft.tensors):
        if re.search(r"attn_(q_a|q_b|kv|output_[ab])\.|_(exps|shexp)\.|^fc\.|_fn\.", name):
            draft.kinds[name] = Type.Q8_0 if draft.tensors[name].shape[-1] % 32 == 0 else Type.F16
        elif re.search(r"_(norm|sinks|base|scale)\.|\.bias$", name):
            draft.kinds[name] = Type.BF16
    assert draft.load(tmp_path).bytes < DrafterFile().load(tmp_path).bytes / 2


def test_copies_of_the_target_s_matrices_are_ignored(tmp_path: Path) -> None:
    copies = {name: np.zeros((512, 64), np.float32) for name in ("token_embd.weight", "output.weight")}
    assert DrafterFile(tensors=copies).load(tmp_path).bytes == DrafterFile().load(tmp_path).bytes


def test_progress_and_its_interruption() -> None:
    seen: list[float] = []
    _native.Drafter.load(str(tools.DRAFTER), tiny_target(), progress=seen.append)
    assert seen[-1] == 1

    def stop(fraction: float) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        _native.Drafter.load(str(tools.DRAFTER), tiny_target(), progress=stop)


def test_the_fingerprint_tells_weights_apart(tmp_path: Path) -> None:
    other = DrafterFile()
    other.tensors["fc.weight"] = other.tensors["fc.weight"] + 1
    first, again, third = (draft.load(tmp_path).fingerprint for draft in (DrafterFile(), DrafterFile(), other))
    assert first == again != third


# --- optional parts ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("contract", CONTRACTS)
def test_without_a_confidence_head(tmp_path: Path, contract: str) -> None:
    draft = DrafterFile(contract).remove(r"conf_proj\..*", r".*confidence_dim")
    if contract == "lucebox":
        draft.keys["deepseek4-dflash-draft.dflash.dspark.confidence.enabled"] = (V.BOOL, False)
    found = draft.load(tmp_path)
    assert not found.confidence and not found.hyperparameters.confidence_markov


def test_a_confidence_head_that_reads_the_hidden_state_alone(tmp_path: Path) -> None:
    narrow = {CONFIDENCE: np.ones((1, HIDDEN), np.float32), "conf_proj.bias": np.ones(1, np.float32)}
    found = DrafterFile(tensors=narrow).load(tmp_path)
    assert found.confidence and not found.hyperparameters.confidence_markov


@pytest.mark.parametrize("contract", ["ds4", "dspark-only", "relayout"])
def test_without_sequential_heads(tmp_path: Path, contract: str) -> None:
    draft = DrafterFile(contract).remove(r"markov.*", r"conf_proj\..*")
    key = next(key for key in draft.keys if key.endswith("markov_rank"))
    draft.keys[key] = u32(0)
    found = draft.load(tmp_path)
    assert (found.rank, found.confidence) == (0, False)
    with pytest.raises(FormatError, match=rf"tensor '{re.escape(draft.name(W1))}' is missing"):
        draft.remove(re.escape(key)).load(tmp_path)


@pytest.mark.parametrize("stages", [1, 2, 8])
@pytest.mark.parametrize("contract", CONTRACTS)
def test_other_numbers_of_stages(tmp_path: Path, contract: str, stages: int) -> None:
    assert DrafterFile(contract).with_stages(stages).load(tmp_path).stages == stages


def test_a_block_whose_anchor_does_not_predict(tmp_path: Path) -> None:
    """The key counts the rows of a block; one of them predicts nothing."""
    found = DrafterFile(keys={"dflash.sample_from_anchor": (V.BOOL, False)}).load(tmp_path)
    assert (found.block, found.hyperparameters.from_anchor) == (BLOCK - 1, False)


# --- which file it is -------------------------------------------------------------------------------------------------


def test_a_target_is_refused_with_a_hint() -> None:
    with pytest.raises(FormatError, match=r"holds a DeepSeek-V4 target.*pass this file as the model \(-m\)"):
        _native.Drafter.load(str(tools.TARGET), tiny_target())


MTP = np.zeros((HIDDEN, HIDDEN), np.float32)
OTHERS: dict[str, tuple[DrafterFile, str]] = {
    **{
        f"vanilla MTP {name}": (
            DrafterFile("ds4", tensors={f"mtp.0.{name}.weight": MTP}).remove(r"fc\.weight"),
            rf"vanilla MTP block \(tensor 'mtp\.0\.{name}\.weight'\), which is not DSpark",
        )
        for name in ("e_proj", "h_proj", "enorm")
    },
    "an MTP block of llama.cpp's": (
        DrafterFile("dspark-only", tensors={"blk.6.nextn.eh_proj.weight": MTP}).remove(r"fc\.weight"),
        r"vanilla MTP block \(tensor 'mtp\.6\.nextn",
    ),
    "a backbone without hyper-connections": (
        DrafterFile().remove(r"dflash\.hyper_connection\.count"),
        "without hyper-connections .*another backbone",
    ),
    "hyper-connections of none": (
        DrafterFile(keys={"dflash.hyper_connection.count": u32(0)}),
        "without hyper-connections .*another backbone",
    ),
    "dflash without a Markov head": (DrafterFile().remove(r"markov_w1\.weight"), "without a Markov head"),
    "nothing of ours": (DrafterFile().remove(r"fc\.weight"), r"none of the tensors .*'mtp\.0\.main_proj.*'fc\.weight'"),
    "another architecture": (
        DrafterFile(keys={"general.architecture": (V.STRING, "llama")}),
        r"is no DSpark drafter \(architecture 'llama'\)",
    ),
    "no architecture": (DrafterFile().remove(r"general\.architecture"), r"\(no architecture\)"),
    "an architecture that is no name": (
        DrafterFile("ds4", keys={"general.architecture": (V.STRING, b"deepseek4\xff\n")}),
        r"'general\.architecture' is 'deepseek4\\xff\\x0a'",
    ),
    "a reduced vocabulary": (
        DrafterFile(tensors={"d2t": np.zeros(512, np.int64)}),
        "reduced vocabulary .*'d2t'.*not supported",
    ),
}


@pytest.mark.parametrize("draft, message", OTHERS.values(), ids=OTHERS)
def test_other_files_are_refused_by_name(tmp_path: Path, draft: DrafterFile, message: str) -> None:
    with pytest.raises(FormatError, match=message):
        draft.load(tmp_path)


def test_a_ds4_file_is_known_by_its_tensors_whatever_it_claims(tmp_path: Path) -> None:
    claims = {"general.architecture": (V.STRING, "deepseek4")}
    assert DrafterFile("ds4", keys=claims).load(tmp_path).contract == "dspark-only"
    copied = DrafterFile("dspark-only", tensors={"token_embd.weight": np.zeros((512, 64), np.float32)})
    assert copied.load(tmp_path).contract == "dspark-only"


def test_a_drafter_as_target(tmp_path: Path) -> None:
    for contract in CONTRACTS:
        with pytest.raises(FormatError, match=r"DSpark drafter.*-md"):
            _native.Model.load(str(DrafterFile(contract).write(tmp_path / "drafter.gguf")))


def test_inspection_needs_no_target(tmp_path: Path) -> None:
    found = _native.read_drafter(DrafterFile("ds4").open(tmp_path))
    assert (found.contract, found.taps, found.stages.layers, found.stages.window) == ("ds4", TAPS, 3, 0)
