"""Reads the keys of a drafter file, which differ between the contracts and their writers."""

from __future__ import annotations

from ds4py.errors import FormatError

from .source.gguf_file import GgufSource

MAX_TAPS = 8

ALIASES = {
    "block": ("dflash.block_size", "{arch}.dflash.block_size", "deepseek4.dspark.block_size",
              "deepseek4.dspark_block_size", "dspark.block_size"),
    "noise": ("tokenizer.ggml.mask_token_id", "{arch}.dflash.mask_token_id", "deepseek4.dspark.noise_token_id",
              "deepseek4.dspark_noise_token_id", "dspark.noise_token_id"),
    "rank": ("{arch}.dflash.dspark.markov_rank", "deepseek4.dspark.markov_rank", "deepseek4.dspark_markov_rank",
             "dspark.markov_rank"),
    "stages": ("dflash.block_count", "{arch}.block_count", "dspark.stage_count", "dspark.n_layers",
               "deepseek4.dspark.n_mtp_layers", "deepseek4.dspark.layer_count"),
    "taps": ("dflash.target_layers", "{arch}.dflash.capture_layer_ids", "{arch}.dflash.target_layer_ids",
             "dspark.target_layer_ids", "deepseek4.dspark.target_layer_ids", "deepseek4.dspark.target_layers",
             "deepseek4.dspark_target_layer_ids"),
}  # fmt: skip
"""Keys that mean the same in different files. `{arch}` stands for the architecture of the file."""


def read_taps(source: GgufSource) -> tuple[int, ...]:
    """Returns the tapped target layers, counted from 0 by their outputs."""
    for key in keys_of(source, "taps"):
        value = source.value(key)
        if isinstance(value, list) and all(type(each) is int for each in value):
            return checked_taps(source, key, [each - (key == "dflash.target_layers") for each in value])
    key = "deepseek4.dspark.target_layer_ids"
    scalars = [source.value(f"{key}.{place}") for place in range(MAX_TAPS)]
    found = [each for each in scalars if isinstance(each, int)]
    if not found:
        raise file_error(
            source, "no key says which target layers it taps (" + ", ".join(ALIASES["taps"][:1]) + ", ...)"
        )
    return checked_taps(source, key, found)


def checked_taps(source: GgufSource, key: str, taps: list[int]) -> tuple[int, ...]:
    """Returns the taps as a tuple. Raises FormatError unless they ascend from 0 or more."""
    if taps != sorted(set(taps)) or taps[0] < 0 or len(taps) > MAX_TAPS:
        raise file_error(source, f"key '{key}' means the layers {taps}, wanted up to {MAX_TAPS} in ascending order")
    return tuple(taps)


def keys_of(source: GgufSource, concept: str) -> list[str]:
    """Returns the keys of this file that mean a concept. The first of them decides."""
    keys = (key.format(arch=source.architecture()) for key in ALIASES[concept])
    return [key for key in keys if source.value(key) is not None]


def integer(source: GgufSource, concept: str) -> int:
    """Returns the number of a concept. Raises FormatError if it is missing.

    There is no default, because a drafter with a wrong number seems to work but drafts badly.
    """
    for key in keys_of(source, concept):
        value = source.value(key)
        if type(value) is not int:
            raise file_error(source, f"key '{key}' is {value!r}, wanted a whole number")
        return value
    raise file_error(source, f"no key gives the {concept} ({ALIASES[concept][0]}, {ALIASES[concept][-1]}, ...)")


def file_error(source: GgufSource, text: str) -> FormatError:
    """Makes an error that names the file."""
    return FormatError(f"{source.paths[0]}: {text}")
