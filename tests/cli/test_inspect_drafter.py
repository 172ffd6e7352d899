"""`ds4py inspect` of drafters: what they are, what their tensors are for, and whether they fit a target."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import gguf_tools as tools
import pytest
from drafter_files import CONTRACTS, STAGES, TAPS, DrafterFile, u32
from gguf import GGUFValueType as V

from ds4py.cli import main
from ds4py.cli.tensor_roles import role

pytestmark = pytest.mark.fast


@pytest.fixture
def inspect(capsys: pytest.CaptureFixture[str]) -> Any:
    """Runs the command: exit code, standard output, standard error."""

    def inspect(*flags: object) -> tuple[int, str, str]:
        code = main(["inspect", *map(str, flags)])
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    return inspect


@pytest.mark.parametrize("contract", CONTRACTS)
def test_json_of_a_drafter(inspect: Any, tmp_path: Path, contract: str) -> None:
    path = DrafterFile(contract).write(tmp_path / "drafter.gguf")
    code, out, _ = inspect(path, "--json")
    found = json.loads(out)
    assert (code, found["target"], "pair" in found) == (0, False, False)
    assert found["drafter"] == {
        "contract": contract, "stages": STAGES, "block": 5, "from_anchor": True, "rank": 32, "taps": TAPS,
        "noise": 511, "confidence": True, "confidence_markov": True,
    }  # fmt: skip


@pytest.mark.parametrize("contract", CONTRACTS)
def test_roles_do_not_depend_on_the_contract(contract: str) -> None:
    draft = DrafterFile(contract)
    assert {name: role(draft.name(name)) for name in draft.tensors} == {name: role(name) for name in draft.tensors}
    assert "other" not in map(role, draft.tensors)
    heads = {"fc.weight", "enc.output_norm.weight", "markov_w1.weight", "markov_w2.weight", "conf_proj.weight"}
    assert heads == {name for name in draft.tensors if role(name) == "drafter head"} - {"conf_proj.bias"}


def test_text_of_a_drafter(inspect: Any) -> None:
    code, out, _ = inspect(tools.DRAFTER, "-m", tools.TARGET)
    assert code == 0
    for line in ("contract           dflash", "taps               3, 4, 5", "confidence         yes"):
        assert line in out
    assert f"fits {tools.TARGET}\n" in out


def test_a_pair_that_does_not_fit(inspect: Any, tmp_path: Path) -> None:
    keys = {"dflash.attention.sliding_window": u32(64), "dflash.rope.freq_base": (V.FLOAT32, 5e5)}
    path = DrafterFile(keys=keys).write(tmp_path / "drafter.gguf")
    code, out, _ = inspect(path, "-m", tools.TARGET)
    assert code == 3
    assert "the window is 64, the target's 32; the rope base is 500000, the target's 10000" in out
    code, out, _ = inspect(path, "-m", tools.TARGET, "--json")
    pair = json.loads(out)["pair"]
    assert (code, pair["fits"], pair["target"]) == (3, False, str(tools.TARGET))
    assert "the window is 64" in pair["reason"]


def test_a_damaged_drafter_says_why(inspect: Any, tmp_path: Path) -> None:
    path = DrafterFile("ds4").remove(r"enc\..*").write(tmp_path / "drafter.gguf")
    code, out, _ = inspect(path)
    assert code == 0
    assert "not a DSpark drafter: " in out and "'mtp.0.main_norm.weight' is missing" in out


def test_the_files_the_wrong_way_round(inspect: Any) -> None:
    code, _, error = inspect(tools.TARGET, "-m", tools.DRAFTER)
    assert code == 3 and "holds a DSpark drafter" in error
    code, _, error = inspect(tools.TARGET, "-m", tools.TARGET)
    assert code == 3 and "holds a DeepSeek-V4 target, wanted a DSpark drafter" in error


def test_a_target_is_no_drafter(inspect: Any) -> None:
    assert json.loads(inspect(tools.TARGET, "--json")[1])["drafter"] is None
