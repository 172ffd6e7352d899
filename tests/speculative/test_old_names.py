"""Names from before draft lengths, draft vocabularies and estimates had theirs; they work with a DeprecationWarning."""

from __future__ import annotations

import pytest
from generating import GREEDY, ids_of

import ds4py
from ds4py import Session, speculative
from ds4py.cli import build_parser
from ds4py.speculative import Costs, Cycle, Draft, DraftEstimate, DSparkDrafter, Fixed, Speculation, draft_length


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("HeldQ", "DeviceQ"),
        ("Offer", "DraftEstimate"),
        ("Request", "DraftRequest"),
        ("Rule", "AcceptanceRule"),
        ("Width", "DraftLengthPolicy"),
        ("as_width", "as_draft_length"),
        ("default_shortlist", "default_draft_vocab"),
    ],
)
def test_names_of_the_package(old: str, new: str) -> None:
    with pytest.warns(DeprecationWarning, match=f"{old} is now .*{new}"):
        assert getattr(speculative, old) is getattr(speculative, new)


def test_names_of_the_policies() -> None:
    with pytest.warns(DeprecationWarning, match="MOST is now"):
        assert draft_length.MOST == draft_length.MAX_DRAFT_LENGTH == 15


def test_attributes() -> None:
    cycle = Cycle(2, 1, 0.0, 1.0, 0.0)
    estimate = DraftEstimate([0.5, 0.4], None, has_confidence=True)
    found = (
        (cycle, "width", 2),
        (estimate, "most", 2),
        (estimate, "expected", [0.5, 0.4]),
        (estimate, "confident", True),
        (Fixed(3), "width", 3),
        (DSparkDrafter(64), "shortlist", 64),
        (Draft.point_mass([1]), "held", None),
        (Speculation("off", [cycle]), "widths", [0, 0, 1]),
    )
    for owner, name, value in found:
        with pytest.warns(DeprecationWarning, match=f"{name} is now"):
            assert getattr(owner, name) == value
    with pytest.warns(DeprecationWarning, match="unknown is now"):
        assert Costs().unknown(range(2)) == 1  # type: ignore[attr-defined]
    assert not hasattr(estimate, "width")


def test_arguments(prompted: Session) -> None:
    with pytest.warns(
        DeprecationWarning, match=r"generate\(width=...\) is now .*generate\(draft_length=...\)"
    ) as found:
        pieces = list(prompted.generate(max_tokens=6, sampling=GREEDY, draft="lookup", width=2))  # type: ignore[call-arg]
    assert len(found) == 1 and len(ids_of(pieces)) == 6
    with pytest.warns(DeprecationWarning, match="draft_vocab"):
        assert len(prompted.draft(shortlist=8)) == 5  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="both"):
        prompted.generate(width=2, draft_length=2)  # type: ignore[call-arg]


def test_options_of_streams(pair: ds4py.Engine) -> None:
    with pytest.warns(DeprecationWarning, match="complete"):
        stream = pair.complete("a b c", max_tokens=3, sampling=GREEDY, draft="lookup", width=2)  # type: ignore[call-arg]
    assert list(stream)


def test_the_flag(capsys: pytest.CaptureFixture[str]) -> None:
    args = build_parser().parse_args(["generate", "-p", "a", "--width", "2"])
    assert args.draft_length == 2
    assert capsys.readouterr().err == "ds4py: --width is now --draft-length\n"
