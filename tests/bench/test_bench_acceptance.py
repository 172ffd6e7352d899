"""The bench of given acceptances: how many of its proposals stand, its table, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path

import acceptance
import pytest
from acceptance import Case, Found

Capture = pytest.CaptureFixture[str]


def test_the_embedded_pair(tmp_path: Path, capsys: Capture) -> None:
    """Every proposal stands, or none; the first token comes with the prompt, the other 24 in whole cycles of 6."""
    file = tmp_path / "found.json"
    flags = ["-t", "1", "-n", "25", "--rounds", "2", "--acceptance", "0,1", "--widths", "auto,5"]
    acceptance.main([*flags, "--json", str(file)])
    found = {(each["acceptance"], each["width"]): each["per_cycle"] for each in json.loads(file.read_text())}
    assert found["0", None] == found["1", None] == found["0", "5"] == [1, 1]
    assert found["1", "5"] == [6, 6]
    assert max(found["0", "auto"]) == 1
    assert "| width 5 |" in capsys.readouterr().out


def test_acceptance_that_changes(capsys: Capture) -> None:
    flags = [
        "-t",
        "1",
        "-n",
        "40",
        "--rounds",
        "1",
        "--acceptance",
        "0.2,0.9",
        "--widths",
        "auto,3",
        "--switch",
        "16",
        "--sure",
        "0.5",
    ]
    acceptance.main(flags)
    assert "| 0.9 / 0.2 |" in capsys.readouterr().out


def test_ratios_are_by_round() -> None:
    case = Case("0.5", lambda _: 0.5, Found("0.5", None, [2.0, 4.0]), {"2": Found("0.5", "2", [1.0, 8.0], [2, 2])})
    assert case.found["2"].times(case.plain) == pytest.approx(1.0)
    assert case.best in (0, 2)
    case.found["auto"] = Found("0.5", "auto", [1.0, 4.0], [2.0, 1.0])
    assert acceptance.line(case) == "| 0.5 | 0.33 | 1.00 | 1.41 | 1.41 | 1.50 |"


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["-m", "a.gguf"], "-md"),
        (["--acceptance", "2"], "0 to 1"),
        (["--rounds", "0"], "1 or more"),
        (["--widths", "fast"], "width is"),
        (["--switch", "9", "--acceptance", "0.5"], "needs 0.9"),
    ],
)
def test_wrong_usage(flags: list[str], words: str, capsys: Capture) -> None:
    with pytest.raises(SystemExit) as ended:
        acceptance.main(flags)
    assert ended.value.code == 2
    assert words in capsys.readouterr().err
