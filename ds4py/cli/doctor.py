"""Defines `ds4py doctor`, which lists the devices, checks what they compute, and says what is missing."""

import argparse
import json
from typing import TYPE_CHECKING

from ds4py.cli.model import require_file
from ds4py.cli.options import add_command, add_drafter_flag
from ds4py.console import exits, number, size, table

if TYPE_CHECKING:
    from typing import Any

    from ds4py.doctor import DeviceReport, DoctorReport

DESCRIPTION = """\
Lists the devices of this build with their memory and driver, and the backend status of every op on each of them: what
computes the op, and how far that has been proven. Runs the embedded pair on each device, in a process of its own, and
compares it with the CPU. Says what is missing for the GPUs of this machine, and how to fix it. With -m it says whether
a model fits.

The exit code is 0 if the device of --device can run (and hold the model), and else 1."""


def add_parser(commands: "argparse._SubParsersAction[Any]") -> None:
    """Adds the command and its flags."""
    parser = add_command(
        commands, "doctor", run, help="say what devices can do and what is missing", description=DESCRIPTION
    )
    parser.add_argument("--device", default="auto", help="the device to run on: auto, cpu, or a device's name")
    parser.add_argument("-m", "--model", metavar="FILE", help="a target (GGUF) whose memory is compared")
    add_drafter_flag(parser)
    parser.add_argument(
        "-c", "--context", type=number(int, 1), metavar="N", help="positions for which memory is counted"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object and nothing else")


def run(args: argparse.Namespace) -> int:
    """Examines the machine, prints the report, and returns the exit code."""
    from ds4py.doctor import as_dict, report

    for path in (args.model, args.drafter):
        if path is not None:
            require_file(path)
    found = report(args.device, model=args.model, drafter=args.drafter, context=args.context)
    print(json.dumps(as_dict(found)) if args.json else render(found))
    return exits.OK if found.usable else exits.RUN_TIME


def render(found: "DoctorReport") -> str:
    """Formats the report as text."""
    parts = [devices_table(found.devices), *(ops_section(each) for each in found.devices), cpu_kernels_line(found)]
    if found.model_fit:
        parts.append(model_fit_lines(found))
    return "\n\n".join([*parts, findings_lines(found), conclusion(found)])


def devices_table(devices: "list[DeviceReport]") -> str:
    """Formats a table with one line for each device."""
    rows = [("device", "what", "memory", "free", "driver", "the embedded pair")]
    for each in devices:
        device, known = each.device, each.device["memory_total"] > 0
        rows.append(
            (
                device["name"],
                device["description"].strip(),
                size(device["memory_total"]) if known else "-",
                size(device["memory_free"]) if known else "-",
                each.driver or "-",
                check_summary(each),
            )
        )
    return table(rows, indent=0)


def check_summary(each: "DeviceReport") -> str:
    """Formats the result of checking a device in one line."""
    check = each.check
    if check is None:
        return "not tried: it only helps the CPU"
    if not check.ran:
        return f"FAILED: {check.problem}"
    drafts = "the same draft" if check.same_draft else "another draft"
    words = f"{check.error:.1e} from the reference, {check.same_tokens:.0%} of its tokens, {drafts}"
    return words if check.passed else f"WRONG: {words}"


def ops_section(each: "DeviceReport") -> str:
    """Formats the backend status of each op on a device, and which verifies its CUDA graphs capture."""
    lines = [f"{each.device['name']} ({each.backend}):", table(list(each.ops.items()))]
    if each.cuda_graphs:
        lines.append("  CUDA graphs by width, from the second verify of a shape on:")
        words = [(str(one.width), "captured" if one.captured else "not captured", one.why) for one in each.cuda_graphs]
        lines.append(table(words, indent=4))
    return "\n".join(lines)


def cpu_kernels_line(found: "DoctorReport") -> str:
    """Names the CPU kernels that this processor can run, the best ones first."""
    best, *others = found.kernels
    vnni = "with VNNI" if best in ("avx512", "avx2vnni") else "without VNNI"
    detail = f" ({vnni})" if best.startswith("avx") else ""
    return f"CPU kernels: {best}{detail}, the best that this processor runs" + (
        f"; it runs {', '.join(others)} too" if others else ""
    )


def model_fit_lines(found: "DoctorReport") -> str:
    """Formats the memory that a model needs on each device beside the memory that is free."""
    fit = found.model_fit
    assert fit is not None
    word = "fits" if fit.fits else "does NOT fit"
    lines = [f"the model {word} at a context of {fit.context}"]
    return "\n".join([*lines, *(f"  {need}" for need in fit.needs), *(f"  {each}" for each in fit.notes)])


def findings_lines(found: "DoctorReport") -> str:
    """Formats each problem with its fix."""
    if not found.findings:
        return "nothing is missing"
    lines = []
    for each in found.findings:
        lines.append(f"{'missing' if each.blocks else 'note'} ({each.backend}): {each.found}\n  -> {each.fix}")
    return "\n".join(lines)


def conclusion(found: "DoctorReport") -> str:
    """Says whether the requested device can run models."""
    chosen = found.chosen
    if chosen is None:
        return f"device '{found.requested}' cannot run"
    name = chosen.device["name"]
    if found.usable:
        return f"ready: models run on {name}"
    if found.model_fit is not None and not found.model_fit.fits:
        return f"not ready: the model does not fit on {name}"
    return f"not ready: {name} does not compute what it should"
