"""The bench of given acceptances: how many of its proposals stand, its table, and what it refuses."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "bench"))

import acceptance
from acceptance import Found

Capture = pytest.CaptureFixture[str]


def test_the_embedded_pair(tmp_path: Path, capsys: Capture) -> None:
    """Every proposal stands, or none; the first token comes with the prompt, the other 24 in whole cycles of 6."""
    file = tmp_path / "found.json"
    acceptance.main(["-t", "1", "-n", "25", "--rounds", "2", "--acceptance", "0,1", "--json", str(file)])
    plain, none, every = json.loads(file.read_text())
    assert plain["per_cycle"] == none["per_cycle"] == [1, 1]
    assert every["per_cycle"] == [6, 6]
    assert "| 1 | 6.00 |" in capsys.readouterr().out


def test_ratios_are_by_round() -> None:
    found = [Found(None, [2.0, 4.0], [1.0, 1.0]), Found(0.5, [1.0, 8.0], [2.0, 2.0])]
    assert acceptance.table(found).splitlines()[-1] == "| 0.5 | 2.00 | 0.22 | 0.67 (0.50..2.00) |"


@pytest.mark.parametrize(
    ("flags", "words"),
    [(["-m", "a.gguf"], "-md"), (["--acceptance", "2"], "0 to 1"), (["--rounds", "0"], "1 or more")],
)
def test_wrong_usage(flags: list[str], words: str, capsys: Capture) -> None:
    with pytest.raises(SystemExit) as ended:
        acceptance.main(flags)
    assert ended.value.code == 2
    assert words in capsys.readouterr().err
