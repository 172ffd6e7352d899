"""What the doctor says of machines that lack something."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from fake_machine import GIB, FakeMachine, build_of
from gguf_tools import TARGET

from ds4py import _native, cli
from ds4py.doctor import Build, DeviceCheck, Finding, report
from ds4py.doctor.cuda_graphs import predict_captures
from ds4py.doctor.device_check import MAX_ERROR, check_device
from ds4py.doctor.findings import amd, find_problems, memory, missing_device, nvidia, vulkan
from ds4py.doctor.machine import STRIX_HALO
from ds4py.doctor.report import used_status
from ds4py.runtime.backend_status import GGML, ON_HOST, OWN, BackendStatus, Level

FINE = DeviceCheck(True, error=1e-4, same_tokens=1.0, same_draft=True, verify_ms=(1.0,) * 6)


@pytest.fixture
def fake(tmp_path: Path) -> FakeMachine:
    return FakeMachine(tmp_path)


def only(findings: list[Finding]) -> Finding:
    (found,) = findings
    return found


class TestNvidia:
    def test_a_machine_without_a_card_lacks_nothing(self, fake: FakeMachine) -> None:
        assert find_problems(fake.seen(), build_of("cuda")) == []

    def test_a_build_without_cuda_says_how_to_get_it(self, fake: FakeMachine) -> None:
        fake.card("0x10de", driver="nvidia")
        fake.nvidia_driver()
        assert "-DGGML_CUDA=ON" in only(nvidia(fake.seen(), build_of())).fix

    @pytest.mark.parametrize("driver", [None, "nouveau"])
    def test_a_card_without_its_driver(self, fake: FakeMachine, driver: str | None) -> None:
        fake.card("0x10de", driver=driver)
        fake.library("libcuda.so.1")
        found = only(nvidia(fake.seen(), build_of("cuda")))
        assert "without NVIDIA's driver" in found.found and "nvidia-driver" in found.fix
        assert ("nouveau" in found.found) == (driver is not None)

    def test_a_driver_without_its_library(self, fake: FakeMachine) -> None:
        fake.card("0x10de", driver="nvidia")
        fake.nvidia_driver()
        assert "libcuda.so.1" in only(nvidia(fake.seen(), build_of("cuda"))).found
        fake.library("libcuda.so.1")
        assert nvidia(fake.seen(), build_of("cuda")) == []

    def test_a_library_in_a_folder_of_the_linkers_configuration(self, fake: FakeMachine) -> None:
        fake.card("0x10de", driver="nvidia")
        fake.nvidia_driver()
        fake.write("etc/ld.so.conf.d/nvidia.conf", "# a comment\n/opt/nvidia/lib\n")
        fake.write("opt/nvidia/lib/libcuda.so.1")
        assert nvidia(fake.seen(), build_of("cuda")) == []

    def test_the_drivers_version(self, fake: FakeMachine) -> None:
        fake.nvidia_driver("580.95.05")
        assert fake.seen().nvidia_driver == "580.95.05"

    def test_an_open_kernel_module_says_its_version_otherwise(self, fake: FakeMachine) -> None:
        line = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  570.124.06  Release Build\n"
        fake.write("proc/driver/nvidia/version", line)
        assert fake.seen().nvidia_driver == "570.124.06"


class TestAmd:
    def test_a_build_without_hip_names_the_cards_target(self, fake: FakeMachine) -> None:
        fake.card("0x1002", STRIX_HALO, "amdgpu")
        fake.kfd(0o666)
        fake.write("sys/class/kfd/kfd/topology/nodes/0/properties", "gfx_target_version 0\n")
        fake.write("sys/class/kfd/kfd/topology/nodes/1/properties", "simd_count 80\ngfx_target_version 110501\n")
        assert "-DGPU_TARGETS=gfx1151" in only(amd(fake.seen(), build_of())).fix

    def test_targets_have_a_hexadecimal_step(self, fake: FakeMachine) -> None:
        fake.write("sys/class/kfd/kfd/topology/nodes/1/properties", "gfx_target_version 90010\n")
        assert fake.seen().amd_target == "gfx90a"

    def test_no_device_file(self, fake: FakeMachine) -> None:
        fake.card("0x1002", driver="amdgpu")
        fake.library("libamdhip64.so.7")
        found = only(amd(fake.seen(), build_of("hip")))
        assert "/dev/kfd is missing" in found.found and "--device /dev/kfd" in found.fix

    def test_wrong_permissions_name_the_group_to_join(self, fake: FakeMachine) -> None:
        fake.card("0x1002", driver="amdgpu")
        fake.library("libamdhip64.so.7")
        fake.kfd(0o660)
        group = (fake.root / "dev/kfd").stat().st_gid
        fake.write("etc/group", f"graphics:x:{group}:\n")
        other = (fake.root / "dev/kfd").stat().st_uid + 1
        found = only(amd(fake.seen(uid=other, groups=(group + 1,)), build_of("hip")))
        assert "usermod -aG graphics,video" in found.fix
        assert amd(fake.seen(uid=other, groups=(group,)), build_of("hip")) == []

    def test_no_rocm(self, fake: FakeMachine) -> None:
        fake.card("0x1002", driver="amdgpu")
        fake.kfd(0o666)
        assert "ROCm" in only(amd(fake.seen(), build_of("hip"))).fix
        assert amd(fake.seen(), build_of("vulkan")) == []  # Mesa does without

    def test_little_of_the_shared_memory(self, tmp_path: Path) -> None:
        fake = FakeMachine(tmp_path, memory_gib=124)
        fake.card("0x1002", STRIX_HALO, "amdgpu", gtt=62 * GIB, vram=GIB // 2)
        fake.kfd(0o666)
        fake.library("libamdhip64.so.7")
        found = only(amd(fake.seen(), build_of("hip")))
        assert "62 GiB of 124 GiB" in found.found and not found.blocks
        assert f"ttm.pages_limit={105 * GIB // 4096}" in found.fix

    def test_enough_of_it(self, tmp_path: Path) -> None:
        fake = FakeMachine(tmp_path, memory_gib=124)
        fake.card("0x1002", STRIX_HALO, "amdgpu", gtt=108 * GIB, vram=GIB // 2)
        fake.kfd(0o666)
        assert amd(fake.seen(), build_of("vulkan")) == []


def test_a_card_that_ggml_does_not_see(fake: FakeMachine) -> None:
    fake.card("0x10de", driver="nvidia")
    fake.nvidia_driver()
    fake.library("libcuda.so.1")
    build = Build(frozenset({"cpu", "cuda"}), {"cpu": {}, "cuda": {}}, {"cuda": []})
    assert "older than the CUDA toolkit" in only(find_problems(fake.seen(), build)).fix


class TestVulkan:
    def test_without_loader_and_driver(self, fake: FakeMachine) -> None:
        loader, driver = vulkan(fake.seen(), build_of("vulkan"))
        assert "libvulkan1" in loader.fix and "mesa-vulkan-drivers" in driver.fix

    def test_with_both(self, fake: FakeMachine) -> None:
        fake.library("libvulkan.so.1")
        fake.write("usr/share/vulkan/icd.d/radeon_icd.x86_64.json")
        assert vulkan(fake.seen(), build_of("vulkan")) == []


class TestAskedFor:
    def test_what_is_missing_of_its_backend_is_the_reason(self, fake: FakeMachine) -> None:
        fake.card("0x10de")
        machine, build = fake.seen(), build_of("cuda")
        found = missing_device("cuda:0", machine, build, find_problems(machine, build))
        assert "'cuda:0' is not here" in found.found and "driver" in found.fix

    def test_metal_is_for_macs(self, fake: FakeMachine) -> None:
        assert "macOS" in missing_device("metal", fake.seen(), build_of(), []).fix

    @pytest.mark.parametrize(("name", "switch"), [("cuda", "CUDA"), ("hip:1", "HIP"), ("vulkan:0", "VULKAN")])
    def test_a_backend_that_the_build_has_not(self, fake: FakeMachine, name: str, switch: str) -> None:
        assert f"-DGGML_{switch}=ON" in missing_device(name, fake.seen(), build_of(), []).fix

    def test_cannot_run(self, fake: FakeMachine) -> None:
        found = report("cuda:0", machine=fake.seen(), check=lambda _: FINE)
        assert not found.usable and found.chosen is None
        assert [each.backend for each in found.findings] == ["cuda"]

    def test_the_cpu_can(self, fake: FakeMachine) -> None:
        found = report("auto", machine=fake.seen(), check=lambda _: FINE)
        assert found.usable and found.findings == [] and found.chosen is not None
        assert found.chosen.backend == "cpu" and found.chosen.device["kind"] == "cpu"

    @pytest.mark.parametrize(
        "check",
        [
            DeviceCheck(False, "the process died of signal 11: "),
            DeviceCheck(True, error=2 * MAX_ERROR, same_tokens=1.0),
        ],
    )
    def test_a_device_that_fails_or_computes_wrongly_cannot(self, fake: FakeMachine, check: DeviceCheck) -> None:
        assert not report("cpu", machine=fake.seen(), check=lambda _: check).usable

    def test_a_gpu_comes_before_the_cpu(self, fake: FakeMachine) -> None:
        here = Build.here()
        (cpu,) = here.devices["cpu"]
        gpu = {**cpu, "name": "CUDA0", "kind": "gpu"}
        build = Build(here.present | {"cuda"}, {**here.features, "cuda": {}}, {**here.devices, "cuda": [gpu]})
        found = report("auto", machine=fake.seen(), build=build, check=lambda _: FINE)
        assert found.chosen is not None and found.chosen.device["name"] == "CUDA0"
        assert all("GGML_CUDA_GRAPHS off" in each.why for each in found.chosen.cuda_graphs)
        named = report("cuda", machine=fake.seen(), build=build, check=lambda _: FINE)
        assert named.chosen is not None and named.chosen.device["name"] == "CUDA0"


def test_a_kernel_that_was_not_used_is_not_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    own = BackendStatus("own", Level.EMULATED, "wave sizes 32 and 64", "2026-11")
    monkeypatch.setitem(OWN, "draft attention", {"cuda": own})
    assert used_status("draft attention", "cuda", "own (CUDA)") == own == used_status("draft attention", "cuda", None)
    assert used_status("draft attention", "cuda", "ggml") == GGML["cuda"]
    assert used_status("acceptance", "cuda", "host") == ON_HOST


class TestMemory:
    def test_little_in_general(self, tmp_path: Path) -> None:
        assert "512 MiB" in only(memory(FakeMachine(tmp_path, memory_gib=0.5).seen())).found

    def test_too_little_for_a_model(self, tmp_path: Path) -> None:
        machine = FakeMachine(tmp_path, memory_gib=1 / 256).seen()  # 4 MiB
        found = report("cpu", machine=machine, model=str(TARGET), context=512, check=lambda _: FINE)
        assert found.model_fit is not None and not found.model_fit.fits and not found.usable
        assert found.model_fit.context == 512 and "has 4.0 MiB free" in found.model_fit.notes[0]

    def test_enough_with_the_drafter_counted(self, fake: FakeMachine) -> None:
        drafter = str(TARGET.parent / "tiny-drafter-f32.gguf")
        machine = fake.seen()
        found = report("cpu", machine=machine, model=str(TARGET), drafter=drafter, check=lambda _: FINE)
        assert found.model_fit is not None and found.model_fit.fits and found.usable
        assert sum(need.parts["drafter"] for need in found.model_fit.needs) > 1 << 20


class TestCapture:
    def captured(self, types: set[str], capability: int | None, graphs: bool = True) -> list[bool]:
        return [each.captured for each in predict_captures(types, capability, built_with_graphs=graphs)]

    @pytest.mark.parametrize("capability", [None, 75, 80, 90, 120])
    def test_all_widths_with_quantised_experts(self, capability: int | None) -> None:
        assert all(self.captured({"Q4_K", "MXFP4", "IQ2_XXS"}, capability))

    def test_no_width_without_graphs(self) -> None:
        assert not any(self.captured({"Q4_K"}, 90, graphs=False))

    def test_no_width_on_old_cards(self) -> None:
        assert not any(self.captured({"Q4_K"}, 61))

    def test_floats_need_tensor_cores_for_them(self) -> None:
        assert all(self.captured({"F32", "BF16"}, 80))
        assert not any(self.captured({"F32"}, 75))

    def test_widths_at_which_the_kernel_changes(self) -> None:
        kernels = [each.why for each in predict_captures({"Q3_K"}, 80, built_with_graphs=True)]
        assert kernels == ["Q3_K: mmvq"] * 5 + ["Q3_K: mmq"]


class TestHere:
    def test_the_cpu_computes_what_ggml_does(self) -> None:
        check = check_device("cpu")
        assert check.passed and 0 < check.error <= MAX_ERROR and len(check.verify_ms) == 6

    def test_a_device_that_is_not_here_fails_with_the_reason(self) -> None:
        check = check_device("cuda:7")
        assert not check.ran and "cuda:7" in check.problem

    def test_the_command(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert cli.main(["doctor", "--device", "cpu", "--json"]) == 0
        found = json.loads(capsys.readouterr().out)
        (cpu,) = (each for each in found["devices"] if each["name"] == "CPU")
        assert found["chosen"] == "CPU" and cpu["memory_total"] > 0 and cpu["trial"]["passed"]
        assert found["cpu_kernels"] == _native.cpu_kernels() and cpu["ops"]["products"].startswith("own")

    def test_the_command_for_a_device_that_is_not_here(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert cli.main(["doctor", "--device", "cuda:0"]) == 1
        assert "device 'cuda:0' cannot run" in capsys.readouterr().out
