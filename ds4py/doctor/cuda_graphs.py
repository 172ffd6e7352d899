"""Predicts which verifies ggml captures as CUDA graphs.

The rules are those of ggml 0.20.2 (ggml-cuda.cu, mmvq.cu, mmq.cu, mmf.cu). ggml captures a graph at its second run, if
its nodes and addresses have not changed since the first run and no node waits for the host. Only a matmul of chosen
experts (MUL_MAT_ID) may wait. Its kernels that do not wait are mmvq for few rows of quantised weights, mmq for any
number of rows of most types, and mmf for floats.
"""

from __future__ import annotations

import subprocess
from dataclasses import dataclass

VOLTA, TURING, AMPERE, ADA = 70, 75, 80, 89

MMQ_TYPES = frozenset(
    (
        *(f"Q{bits}_0" for bits in (1, 2, 4, 5, 8)),
        *("Q4_1", "Q5_1", "MXFP4", "NVFP4"),
        *(f"Q{bits}_K" for bits in (2, 3, 4, 5, 6)),
        *("IQ1_S", "IQ2_XXS", "IQ2_XS", "IQ2_S", "IQ3_XXS", "IQ3_S", "IQ4_XS", "IQ4_NL"),
    )
)
FLOATS = frozenset({"F32", "F16", "BF16"})
FEWEST_ROWS = {"IQ2_S": 7, "IQ3_S": 6, "IQ3_XXS": 7, "MXFP4": 7, "Q2_K": 7, "Q3_K": 5}
"""The most rows for which mmvq multiplies chosen experts on Turing and Ampere. Other types have MMVQ_ROWS."""
MMVQ_ROWS = 8


@dataclass(frozen=True)
class GraphCapture:
    """Whether ggml captures a verify of this width, and the reason."""

    width: int
    captured: bool
    why: str


def compute_capability() -> int | None:
    """Asks nvidia-smi for the compute capability of the first card, such as 90 for 9.0. Returns None if it fails."""
    command = ["nvidia-smi", "--query-gpu=compute_cap", "--format=csv,noheader"]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, timeout=20, check=True).stdout.split()
        return round(10 * float(answer[0]))
    except (OSError, subprocess.SubprocessError, ValueError, IndexError):
        return None


def predict_captures(types: set[str], capability: int | None, *, built_with_graphs: bool) -> list[GraphCapture]:
    """Predicts the capture of verifies of widths 0 to 5, with experts of the given types.

    A `capability` of 90 stands for compute capability 9.0. None means unknown and counts as Turing.
    """
    return [_capture(width, types, capability or TURING, built_with_graphs) for width in range(6)]


def _capture(width: int, types: set[str], capability: int, built_with_graphs: bool) -> GraphCapture:
    if not built_with_graphs:
        return GraphCapture(width, False, "the build has GGML_CUDA_GRAPHS off")
    if capability < VOLTA:
        return GraphCapture(width, False, f"compute capability {capability / 10:.1f} is below 7.0")
    kernels = {kind: _kernel(kind, width + 1, capability) for kind in sorted(types)}
    waiting = [kind for kind, kernel in kernels.items() if kernel is None]
    if waiting:
        return GraphCapture(width, False, f"products of {', '.join(waiting)} experts wait for the host")
    return GraphCapture(width, True, ", ".join(f"{kind}: {kernel}" for kind, kernel in kernels.items()))


def _kernel(kind: str, rows: int, capability: int) -> str | None:
    """Returns ggml's kernel for chosen experts of a type, or None for the kernel that waits for the host.

    Floats are assumed to have a size that mmf accepts.
    """
    if kind in FLOATS:
        least = {"F32": AMPERE, "F16": VOLTA, "BF16": AMPERE}[kind]
        return "mmf" if capability >= least else None
    limit = MMVQ_ROWS
    if capability < ADA and capability >= TURING:
        limit = FEWEST_ROWS.get(kind, MMVQ_ROWS)
    if rows <= limit:
        return "mmvq"
    return "mmq" if kind in MMQ_TYPES else None
