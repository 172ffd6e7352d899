"""Reads a checkpoint folder: which shard holds which tensor, and the tensors as rows of their number format."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import cached_property
from pathlib import Path

from ds4py.errors import FormatError

from .. import quantise
from ..roles import EXPERTS, Role, Slot
from .config import ModelConfig
from .fp4 import BLOCK as FP4_BLOCK
from .fp4 import Fp4
from .fp8 import BLOCK as FP8_BLOCK
from .fp8 import Fp8
from .json_keys import load
from .names import Naming, TensorSlice, recognise_naming
from .read_config import read_config
from .rows import FLOAT_DTYPES, GgmlRows, Rows, TokenMapRows
from .safetensors import StoredTensor, read_header

INDEX = "model.safetensors.index.json"
STAGE = re.compile(r"mtp\.(\d+)\.")
UNUSED = re.compile(r".*(gate\.bias_vl|rotary_emb\..*inv_freq)$")
"""Tensors of a target that a text model does not need."""
SCALE_TYPES = ("F8_E8M0", "U8", "F32")


class Checkpoint:
    """The tensors of a checkpoint by name. A shard is opened when one of its tensors is needed, and stays open.

    Raises FormatError naming a tensor or file that is wrong, and OSError for a file that cannot be read.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.config: ModelConfig = read_config(folder)
        self._shards: dict[str, dict[str, StoredTensor]] = {}
        self._file_of = self._read_index()
        self._used: set[str] = set()

    @cached_property
    def naming(self) -> Naming:
        """The naming of the target's tensors."""
        return recognise_naming([name for name in self._file_of if not STAGE.match(name)])

    @cached_property
    def stages(self) -> int:
        """The number of the drafter's stages, found by their tensors; 0 without a drafter."""
        numbers = {int(match[1]) for match in map(STAGE.match, self._file_of) if match}
        if numbers != set(range(len(numbers))):
            raise FormatError(f"{self.folder}: has drafter stages {sorted(numbers)}, wanted 0, 1, 2, ... without a gap")
        return len(numbers)

    def has(self, name: str) -> bool:
        """Tells whether a tensor exists."""
        return name in self._file_of

    def stored_tensor(self, name: str) -> StoredTensor:
        """Returns the description of a tensor, and marks the tensor as used."""
        file = self._file_of.get(name)
        if file is None:
            raise FormatError(f"{self.folder}: tensor '{name}' is missing; a shard or the index is incomplete")
        found = self._open(file, name).get(name)
        if found is None:
            raise FormatError(f"{self.folder / file}: tensor '{name}' is missing, though the index says it is there")
        self._used.add(name)
        return found

    def rows(self, slot: Slot, part: TensorSlice) -> Rows:
        """Returns one matrix of a slot. Raises FormatError if it contradicts the configuration."""
        entry = self.stored_tensor(part.name)
        if slot.role == Role.TOKEN_MAP:
            require(entry, part.shape, ("I64", "I32"))
            return TokenMapRows(entry, self.config.experts)
        single = len(part.shape) == 2  # stacks of experts are always plain floats
        if entry.dtype == "F8_E4M3" and single and is_matrix(slot):
            return self._fp8(entry, part)
        if entry.dtype in ("I8", "U8") and single and slot.role in EXPERTS:
            return self._fp4(entry, part)
        require(entry, part.shape, tuple(FLOAT_DTYPES))
        kind, columns = FLOAT_DTYPES[entry.dtype], part.shape[-1]
        offset = entry.offset + part.first * quantise.row_bytes(kind, columns)
        return GgmlRows(entry.name, entry.shard, offset, kind, part.rows, columns)

    def require_all_used(self, belongs: Callable[[str], bool]) -> None:
        """Raises FormatError for an unused tensor for which `belongs` is true."""
        extra = [name for name in self._names() if belongs(name) and name not in self._used and not UNUSED.match(name)]
        if extra:
            more = f" and {len(extra) - 1} more" if len(extra) > 1 else ""
            raise FormatError(
                f"{self.folder}: tensor '{min(extra)}'{more} has no place in the model that config.json describes"
            )

    def drop(self, name: str) -> None:
        """Marks a tensor as used, so that it may be left out."""
        self._used.add(name)

    def identity(self) -> list[str]:
        """Describes names, sizes and times of the opened shards, to find out whether they have changed."""
        paths = [self.folder / "config.json", *(self.folder / file for file in sorted(self._shards))]
        return [f"{path} {path.stat().st_size} {path.stat().st_mtime_ns}" for path in paths]

    def _fp8(self, weight: StoredTensor, part: TensorSlice) -> Rows:
        require(weight, part.shape, ("F8_E4M3",))
        rows, columns = part.shape
        scale = self._scale(weight)
        require(scale, (-(-rows // FP8_BLOCK), -(-columns // FP8_BLOCK)), SCALE_TYPES)
        return Fp8(weight, scale)

    def _fp4(self, weight: StoredTensor, part: TensorSlice) -> Rows:
        rows, columns = part.shape
        if columns % FP4_BLOCK:
            raise FormatError(f"tensor '{weight.name}' has rows of {columns}, wanted a multiple of {FP4_BLOCK} for FP4")
        require(weight, (rows, columns // 2), ("I8", "U8"))
        scale = self._scale(weight)
        require(scale, (rows, columns // FP4_BLOCK), ("F8_E8M0", "U8"))
        return Fp4(weight, scale)

    def _scale(self, weight: StoredTensor) -> StoredTensor:
        names = (weight.name.removesuffix(".weight") + ".scale", weight.name + "_scale_inv")
        name = next((name for name in names if self.has(name)), None)
        if name is None:
            raise FormatError(
                f"{self.folder}: tensor '{names[0]}' is missing, wanted the scale of '{weight.name}' ({weight.dtype})"
            )
        return self.stored_tensor(name)

    def _read_index(self) -> dict[str, str]:
        path = self.folder / INDEX
        if path.exists():
            found = load(path).get("weight_map")
            if not isinstance(found, dict) or not all(is_file_name(file) for file in found.values()):
                raise FormatError(f"{path}: key 'weight_map' is not a map from tensors to files of this folder")
            return found
        files = sorted(file.name for file in self.folder.glob("*.safetensors"))
        if not files:
            raise FormatError(f"{self.folder}: has no safetensors files")
        where: dict[str, str] = {}
        for file in files:
            for name in self._open(file, file):
                if name in where:
                    raise FormatError(f"{self.folder}: tensor '{name}' is both in {where[name]} and in {file}")
                where[name] = file
        return where

    def _open(self, file: str, wanted: str) -> dict[str, StoredTensor]:
        if file not in self._shards:
            path = self.folder / file
            if not path.is_file():
                raise FormatError(f"{path}: missing; it holds tensor '{wanted}'")
            self._shards[file] = read_header(path)
        return self._shards[file]

    def _names(self) -> Iterable[str]:
        """Returns the tensors of the index and of the opened shards."""
        return set(self._file_of).union(*self._shards.values())


def is_matrix(slot: Slot) -> bool:
    """Tells whether a slot may be stored with scales. Vectors and biases of scores never are."""
    return slot.role not in (Role.VECTOR, Role.HC, Role.APE, Role.CONFIDENCE, Role.TOKEN_MAP)


def is_file_name(file: object) -> bool:
    """Tells whether a value is the name of a file in this folder. A path that leads elsewhere is not."""
    return isinstance(file, str) and Path(file).name == file


def require(entry: StoredTensor, shape: tuple[int, ...], dtypes: tuple[str, ...]) -> None:
    """Raises FormatError naming the tensor if its shape or dtype is wrong."""
    if entry.dtype not in dtypes:
        raise FormatError(
            f"{entry.shard.path}: tensor '{entry.name}' is of dtype {entry.dtype}, wanted {' or '.join(dtypes)}"
        )
    if entry.shape != shape:
        raise FormatError(
            f"{entry.shard.path}: tensor '{entry.name}' has shape {list(entry.shape)}, wanted {list(shape)} "
            "(by config.json)"
        )
