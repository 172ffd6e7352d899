"""What goes where so that it fits: the planner alone, and through engine and command line."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from paths import GOLDEN

import ds4py.runtime.loading
from ds4py import Engine, _native
from ds4py.errors import BackendError
from ds4py.memory import (
    DEVICE_RESERVE,
    DeviceNeed,
    DeviceOptions,
    Plan,
    find_plan,
    measure_files,
    others_with,
    shared_memory_note,
)
from ds4py.runtime.loading import ModelFiles

MIB = 1 << 20
LAYERS = 10
TARGET, DRAFTER = GOLDEN / "tiny-target-f32.gguf", GOLDEN / "tiny-drafter-f32.gguf"
WANTED = DeviceOptions("auto", (), 0, 8192)


class Machine:
    """A model of ten layers, 100 MiB of weights and 300 of experts each, on a card and a CPU of some MiB."""

    def __init__(self, card: int, host: int = 10_000) -> None:
        self.card, self.host, self.asked = card * MIB + DEVICE_RESERVE, host * MIB, list[DeviceOptions]()

    def __call__(self, wanted: DeviceOptions) -> Sequence[DeviceNeed]:
        self.asked.append(wanted)
        state, scratch = wanted.context // 8 * MIB // 1024 * 100, 50 * MIB
        empty = dict.fromkeys(("weights", "experts", "packed", "state", "scratch", "drafter"), 0)
        all_weights = {"weights": 1000 * MIB, "drafter": 100 * MIB, "state": state, "scratch": scratch}
        if wanted.device == "cpu":
            parts = {**empty, **all_weights, "experts": 3000 * MIB, "packed": 4100 * MIB}
            return [DeviceNeed("CPU", True, self.host, parts)]
        here = {**empty, **all_weights, "experts": (LAYERS - wanted.cpu_moe) * 300 * MIB}
        there = {**empty, "experts": wanted.cpu_moe * 300 * MIB, "packed": wanted.cpu_moe * 300 * MIB}
        there["scratch"] = scratch if wanted.cpu_moe else 0
        return [DeviceNeed("CARD0", False, self.card, here), DeviceNeed("CPU", True, self.host, there)]


def plan(machine: Machine, wanted: DeviceOptions = WANTED) -> Plan:
    return find_plan(machine, wanted, LAYERS)


def test_what_fits_is_taken_as_it_is() -> None:
    machine = Machine(card=4250)
    assert plan(machine).options == WANTED
    assert (plan(machine).notes, len(machine.asked)) == ((), 2)


@pytest.mark.parametrize(("card", "experts"), [(4249, 1), (3950, 1), (3949, 2), (1250, 10)])
def test_auto_keeps_the_fewest_experts_on_the_cpu(card: int, experts: int) -> None:
    """1000 of weights, 100 of the drafter, 100 of state, 50 of scratch, 3000 of experts."""
    found = plan(Machine(card))
    assert found.options == replace(WANTED, cpu_moe=experts)
    assert found.notes[0].endswith(f"has {(card * MIB + DEVICE_RESERVE) / 2**30:.1f} GiB free: routed experts of "
                                   f"{experts} layers stay on the CPU")  # fmt: skip
    assert found.host_reserve == 50 * MIB
    assert "drafting may not pay" in found.notes[1]


def test_auto_goes_to_the_cpu_where_not_even_that_helps() -> None:
    found = plan(Machine(card=1249))
    assert (found.options.device, found.options.cpu_moe) == ("cpu", 0)
    assert "the CPU computes all" in found.notes[0]


def test_a_device_that_was_asked_for_is_refused_with_what_would_fit() -> None:
    with pytest.raises(BackendError) as raised:
        plan(Machine(card=4200), replace(WANTED, device="card"))
    text = str(raised.value)
    assert "CARD0: needs 4.2 GiB (weights 1000.0 MiB, routed experts 2.9 GiB, state 100.0 MiB" in text
    assert text.endswith("--n-cpu-moe 1 would fit, -c 4096 would fit, --device cpu would fit")


def test_only_what_fits_is_suggested() -> None:
    with pytest.raises(BackendError, match="use a smaller model or quantisation"):
        plan(Machine(card=100, host=10), replace(WANTED, device="card"))
    with pytest.raises(BackendError, match=r"CPU: needs 150.0 MiB \(state 100.0 MiB, scratch 50.0 MiB\)"):
        plan(Machine(card=100, host=149), replace(WANTED, device="cpu"))


def test_weights_may_be_paged_on_the_cpu_and_copies_are_left_out() -> None:
    found = plan(Machine(card=0, host=4000), replace(WANTED, device="cpu"))
    assert found.notes == (
        "weights are used as they lie in the file: copies for the kernels take 4.0 GiB, 3.8 GiB are left",
    )
    assert plan(Machine(card=0, host=4250), replace(WANTED, device="cpu")).notes == ()


def test_experts_on_the_cpu_of_the_cpu_are_noted() -> None:
    found = plan(Machine(card=0), replace(WANTED, device="cpu", cpu_moe=3))
    assert found.notes == ("keeping experts on the CPU changes nothing where the CPU computes all",)


def test_experts_on_the_cpu_are_noted_where_there_is_a_drafter() -> None:
    def without_drafter(wanted: DeviceOptions) -> list[DeviceNeed]:
        return [replace(need, parts={**need.parts, "drafter": 0}) for need in machine(wanted)]

    machine, some = Machine(card=10_000), replace(WANTED, cpu_moe=3)
    assert ["drafting may not pay" in each for each in plan(machine, some).notes] == [True]
    assert find_plan(without_drafter, some, LAYERS).notes == ()


def process(root: Path, pid: int, *files: str) -> None:
    (root / str(pid)).mkdir()
    lines = [f"7f00-7f01 r--p 00000000 08:01 {i} {file}" for i, file in enumerate(files)]
    (root / str(pid) / "maps").write_text("\n".join(["00400000-00452000 rw-p 00000000 00:00 0", *lines]) + "\n")


def test_another_process_with_the_model(tmp_path: Path) -> None:
    (tmp_path / "meminfo").write_text("MemTotal:       1000 kB\n")
    process(tmp_path, 30, "/lib/libc.so", "/models/a b.gguf")
    process(tmp_path, 31, "/models/other.gguf")
    (tmp_path / "32").mkdir()  # gone, or another user's
    assert others_with(["/models/a b.gguf"], tmp_path) == [30]
    note = shared_memory_note(["/models/a b.gguf"], 400 * 1024, tmp_path)
    assert note is not None and note.startswith("process 30 has this model loaded, too")
    assert shared_memory_note(["/models/a b.gguf"], 300 * 1024, tmp_path) is None
    assert shared_memory_note(["/models/none.gguf"], 400 * 1024, tmp_path) is None


def test_an_engine_that_does_not_fit(remote: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The sizes are the real ones; what there is of the device is not."""
    real, free = ds4py.runtime.loading.measure_files, 0

    def limited(*files: Any, **options: Any) -> Any:
        def measure(wanted: DeviceOptions) -> list[DeviceNeed]:
            found = real(*files, **options)(wanted)
            return [need if need.host else replace(need, available=free + DEVICE_RESERVE) for need in found]

        return measure

    def needed(experts: int) -> int:
        with Engine(TARGET, device=remote, cpu_moe=experts, threads=1):
            files = ModelFiles.open(str(TARGET), DRAFTER)
            return next(
                n for n in real(files.target, files.drafter)(DeviceOptions(remote, (), experts, 4096)) if not n.host
            ).needed

    free = needed(2)
    monkeypatch.setattr(ds4py.runtime.loading, "measure_files", limited)
    with pytest.raises(BackendError, match=r"--n-cpu-moe 2 would fit, .*--device cpu would fit"):
        Engine(TARGET, drafter=DRAFTER, device=remote, context=4096, threads=1)
    monkeypatch.setenv("DS4_DEVICE", remote)
    with Engine(TARGET, drafter=DRAFTER, device="auto", context=4096, threads=1) as engine:
        assert engine.device_map == f"{remote}, routed experts of 2 layers on the CPU"
        assert "routed experts of 2 layers stay on the CPU" in engine.notes[0]


def test_scratch_is_what_the_graphs_of_a_long_session_take() -> None:
    """As many as a session keeps, after cycles of every width, and a prompt's chunk on top."""
    with Engine(TARGET, drafter=DRAFTER, threads=1) as engine:
        native = engine.session(context=4096)._live
        sampler, rng = _native.Sampler(_native.SamplingPolicy(temperature=1)), _native.Rng(1)
        native.prefill(ids(1500))
        native.verify(ids(16))
        for cycle in range(150):
            rows = 1 + cycle % 6
            native.draft(5, sampler=sampler, rng=rng)
            native.verify(ids(rows))
            native.commit(rows)
        native.prefill(ids(512))
        taken = sum(graph.bytes for graph in native.diagnostics.graphs())
        files = ModelFiles.open(str(TARGET), DRAFTER)
        (needs,) = measure_files(files.target, files.drafter)(DeviceOptions("cpu", (), 0, native.position))
    assert taken <= needs.parts["scratch"] < 1.1 * taken


def ids(count: int) -> npt.NDArray[np.int32]:
    return np.arange(count, dtype=np.int32) % 200


def test_inspect_prints_what_each_device_holds(cli: Any, remote: str) -> None:
    flags = ["inspect", TARGET, "-md", DRAFTER, "-c", 1024, "--device", f"{remote},cpu", "--split", "4,2"]
    flags += ["--n-cpu-moe", 1]
    far, near = json.loads(cli(*flags, "--json").stdout)["memory"]["devices"]
    assert (far["device"], near["device"]) == (remote, "CPU")
    assert far["drafter"] == 0 < near["drafter"]
    assert near["experts"] == far["experts"] > 0  # three layers each
    assert far["needed"] == sum(far[part] for part in ("weights", "experts", "state", "scratch"))
    assert near["needed"] == near["state"] + near["scratch"]
    text = cli(*flags).stdout
    assert f"  {remote}\n" in text and "routed experts" in text and "counted from sizes" in text


@pytest.mark.parametrize(
    ("flags", "code", "said"),
    [
        (["--device", "cpu", "--split", "4,2"], 2, "the split 4,2 has 2 parts for 1 device"),
        (["--split", "4,x"], 2, "'x' is not a whole number"),
        (["--split", "4,0"], 2, "0 is out of range, wanted 1 or more"),
        (["--cpu-moe", "--n-cpu-moe", "2"], 2, "not allowed with argument"),
        (["--device", "cpu", "--n-cpu-moe", "7"], 2, "experts of 7 layers are to stay on the CPU, wanted 0 to 6"),
        (["--device", "cpu,here"], 2, "device 'here' is not here; this build offers"),
        (["--device", "cpu", "--cpu-moe"], 0, "changes nothing where the CPU computes all"),
    ],
)
def test_flags(cli: Any, flags: list[str], code: int, said: str) -> None:
    done = cli("generate", "-m", TARGET, "-t", 1, "-n", 1, "--temp", 0, *flags, "--prompt-ids", "1,2,3")
    assert (done.returncode, said in done.stderr) == (code, True), done.stderr
