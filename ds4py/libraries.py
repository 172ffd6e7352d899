"""Explains what to do when the native module cannot be loaded because a library of the system is missing."""

ADVICE = {
    "libcuda.so": "it is NVIDIA's driver: install it (Debian: libcuda1), or start the container with --gpus all",
    "libcudart": "it is the CUDA toolkit's, with which ds4py was built: install the same version",
    "libcublas": "it is the CUDA toolkit's, with which ds4py was built: install the same version",
    "libamdhip64": "it is ROCm's, with which ds4py was built: install it, or name its folder in LD_LIBRARY_PATH",
    "libhipblas": "it is ROCm's, with which ds4py was built: install it, or name its folder in LD_LIBRARY_PATH",
    "librocblas": "it is ROCm's, with which ds4py was built: install it, or name its folder in LD_LIBRARY_PATH",
    "libvulkan": "it is Vulkan's loader: install it (Debian: libvulkan1)",
}
"""The fix for a missing library, by a part of its name."""


def explain(error: ImportError) -> str:
    """Returns the error's text, followed by the fix where it is known."""
    text = str(error)
    advice = next((fix for name, fix in ADVICE.items() if name in text), None)
    if advice is None:
        return text
    return f"{text}. {advice[0].upper()}{advice[1:]}; or build ds4py without that backend, as 'pip install .' does"
