"""The table of backend status, and the note on a device that nobody has run on."""

from __future__ import annotations

import re
import warnings

import pytest
from paths import ROOT

from ds4py import UnprovenDevice, _native, cli
from ds4py.runtime import backend_status, engine
from ds4py.runtime.backend_status import BACKENDS, OPS, BackendStatus, Level

pytestmark = [pytest.mark.fast, pytest.mark.on_device]

DOCS = ROOT / "docs" / "backends.md"


def documented() -> dict[str, list[str]]:
    """The cells of the table in the documentation, by op."""
    lines = DOCS.read_text(encoding="utf-8").splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith("| op |"))
    table = {}
    for line in lines[start + 2 :]:
        if not line.startswith("|"):
            break
        op, *cells = (cell.strip() for cell in line.strip("|").split("|"))
        table[op] = cells
    return table


def test_the_documentation_has_this_table() -> None:
    wanted = {op: [str(backend_status.backend_status(op, backend)) for backend in BACKENDS] for op in OPS}
    assert documented() == wanted


def test_every_kind_of_cpu_kernel_is_in_it() -> None:
    assert set(_native.cpu_kernels()) <= set(backend_status.CPU_KERNELS)
    source = (ROOT / "native/kernels/cpu/available.cpp").read_text()
    assert set(re.findall(r"found\.add\((\w+)::", source)) == set(backend_status.CPU_KERNELS)


def test_whatever_ran_says_where_and_when() -> None:
    for op in OPS:
        for backend in BACKENDS:
            found = backend_status.backend_status(op, backend)
            assert found.level <= Level.COMPILED or (found.where and found.when)


@pytest.mark.parametrize(
    ("device", "backend"),
    [("CPU", "cpu"), ("CUDA0", "cuda"), ("ROCm1", "hip"), ("MTL0", "metal"), ("Vulkan0", "vulkan"), ("RPC0", "rpc")],
)
def test_backends_by_ggmls_names(device: str, backend: str) -> None:
    assert backend_status.backend_of(device) == backend


class TestUnproven:
    @pytest.fixture(autouse=True)
    def nothing_trusted(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delenv("DS4_TRUST", raising=False)
        monkeypatch.setitem(backend_status.GGML, "cuda", BackendStatus("ggml", Level.COMPILED, "nvcc 12.8", "2026-11"))

    def test_says_what_has_happened_and_what_to_do(self) -> None:
        note = backend_status.unproven_note("CUDA0", "avx2")
        assert note is not None and "compiled with nvcc 12.8" in note and "doctor --device CUDA0" in note

    @pytest.mark.parametrize("trusted", ["cuda", "vulkan, CUDA", "all"])
    def test_those_who_trust_it_hear_nothing(self, monkeypatch: pytest.MonkeyPatch, trusted: str) -> None:
        monkeypatch.setenv("DS4_TRUST", trusted)
        assert backend_status.unproven_note("CUDA0", "avx2") is None

    def test_nothing_is_said_of_what_has_been_run(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(backend_status.GGML, "cuda", BackendStatus("ggml", Level.RUN, "H200", "2026-11"))
        assert (
            backend_status.unproven_note("CUDA0", "avx2") is None
            and backend_status.unproven_note("CPU", "avx2") is None
        )

    def test_kernels_of_the_cpu_count_too(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(backend_status.CPU_KERNELS, "neon", BackendStatus("own", Level.EMULATED, "qemu", "2026-11"))
        note = backend_status.unproven_note("CPU", "neon")
        assert note is not None and "the CPU's neon kernels" in note

    def test_an_engine_warns_and_a_filter_stops_it(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(engine, "unproven_note", lambda *_: "not run yet")
        with pytest.warns(UnprovenDevice, match="not run yet"):
            engine.Engine(device="cpu").close()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("ignore", UnprovenDevice)
            engine.Engine(device="cpu").close()
        assert not caught

    @pytest.mark.parametrize("quiet", [False, True])
    def test_commands_say_it_in_a_line(
        self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], quiet: bool
    ) -> None:
        monkeypatch.setattr(engine, "unproven_note", lambda *_: "not run yet")
        flags = ["--quiet"] if quiet else []
        assert cli.main(["generate", "-p", "x", "-n", "1", "--device", "cpu", *flags]) == 0
        assert capsys.readouterr().err.count("ds4py: not run yet\n") == (not quiet)
