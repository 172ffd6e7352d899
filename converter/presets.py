"""Chooses the type of every tensor, by presets for roles and overrides for names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from gguf import GGMLQuantizationType as Type
from gguf import LlamaFileType

from ds4py.errors import RequestError

from .quantise import FLOATS, block_size, type_named
from .roles import Role, Slot

F32, F16, BF16, Q8 = Type.F32, Type.F16, Type.BF16, Type.Q8_0

FIXED = {Role.VECTOR: F32, Role.TOKEN_MAP: Type.I32}
"""Roles with one type in every file, because kernels read them in that type."""

PROTECTED = (Role.HC, Role.APE, Role.SMALL, Role.CONFIDENCE)
"""Roles that are not written below 16 bits. They are small, and rounding would change their decisions."""


@dataclass(frozen=True)
class Preset:
    """The types of a preset.

    Attributes:
        text: a description for the help.
        file_type: the value of `general.file_type`.
        gate_up: the type of the gate and up matrices of routed experts.
        down: the type of the down matrices of routed experts.
        dense: the type of other large matrices.
        tables: the type of embedding, output head and Markov head.
        small: the type of router, indexer and compressors.
        wide: the type of hyper-connections, position biases and confidence head.
    """

    text: str
    file_type: LlamaFileType
    gate_up: Type
    down: Type
    dense: Type = Q8
    tables: Type = Q8
    small: Type = BF16
    wide: Type = F32

    def type_of(self, role: Role) -> Type:
        """Returns the type of a role."""
        if role in FIXED:
            return FIXED[role]
        if role in (Role.GATE, Role.UP):
            return self.gate_up
        if role == Role.DOWN:
            return self.down
        if role in (Role.EMBEDDING, Role.OUTPUT, Role.MARKOV):
            return self.tables
        if role == Role.SMALL:
            return self.small
        if role in (Role.HC, Role.APE, Role.CONFIDENCE):
            return self.wide
        return self.dense


PRESETS = {
    "q2": Preset(
        "IQ2_XXS gate and up, Q2_K down, the rest Q8_0", LlamaFileType.MOSTLY_IQ2_XXS, Type.IQ2_XXS, Type.Q2_K
    ),
    "q4": Preset("Q4_K experts, the rest Q8_0", LlamaFileType.MOSTLY_Q4_K_S, Type.Q4_K, Type.Q4_K),
    "mxfp4": Preset(
        "MXFP4 experts, bit for bit where the source has FP4; the rest Q8_0, embedding and head BF16",
        LlamaFileType.MOSTLY_MXFP4_MOE, Type.MXFP4, Type.MXFP4, tables=BF16,
    ),
    "q8": Preset("Q8_0", LlamaFileType.MOSTLY_Q8_0, Q8, Q8),
    "f16": Preset("F16", LlamaFileType.MOSTLY_F16, F16, F16, dense=F16, tables=F16, small=F16),
    "f32": Preset("F32", LlamaFileType.ALL_F32, F32, F32, dense=F32, tables=F32, small=F32),
}  # fmt: skip
"""The presets. Each writes norms, sinks, biases and hyper-connections as F32, and router, indexer and compressors in 16
bits or more."""


DEFAULT = "mxfp4"


@dataclass
class TypeSelector:
    """Chooses a type for each tensor, and notes each change of a preset's type as a line of text.

    `overrides` are pairs of a pattern and a type. The last one that fits decides.
    """

    preset: Preset
    overrides: Sequence[tuple[str, Type]] = ()
    notes: list[str] = field(default_factory=list)
    used: set[str] = field(default_factory=set)

    def choose(self, slot: Slot, name: str, *, keep_type: Type | None = None, without_bf16: bool = False) -> Type:
        """Returns the type of a slot that is written as `name`.

        `keep_type` is a type that stays unless it is overridden. With `without_bf16`, for readers that do not know
        BF16, small matrices, the Markov head and hyper-connections get F16. Raises RequestError for an override that is
        impossible.
        """
        for pattern, kind in reversed(self.overrides):
            if fnmatchcase(name, pattern) or fnmatchcase(name.removesuffix(".weight"), pattern):
                self.used.add(pattern)
                return checked(slot, name, pattern, kind)
        return self._fitting(slot, name, self._preset(slot.role, without_bf16)) if keep_type is None else keep_type

    def require_all_used(self) -> None:
        """Raises RequestError for an override that has not decided the type of any tensor."""
        for pattern, _ in self.overrides:
            if pattern not in self.used:
                raise RequestError(f"--type '{pattern}' fits no tensor of the output, or a later one fits all of them")

    def _preset(self, role: Role, without_bf16: bool) -> Type:
        kind = self.preset.type_of(role)
        if without_bf16 and self.preset.dense != F32 and (kind == BF16 or role in (Role.HC, Role.MARKOV)):
            return F16
        return kind

    def _fitting(self, slot: Slot, name: str, kind: Type) -> Type:
        """Returns `kind`, or a wider type if the rows are not a whole number of its blocks."""
        columns = slot.shape[-1]
        found = next(each for each in (kind, Q8, F16) if columns % block_size(each) == 0)
        if found != kind:
            self.notes.append(f"{name}: rows of {columns} are no multiple of {block_size(kind)}, {found.name} instead")
        return found


def checked(slot: Slot, name: str, pattern: str, kind: Type) -> Type:
    """Returns the type of an override. Raises RequestError if the tensor cannot have it."""
    if slot.role in FIXED and kind != FIXED[slot.role]:
        raise RequestError(
            f"--type '{pattern}={kind.name}' fits '{name}', which is always {FIXED[slot.role].name}; narrow the pattern"
        )
    if slot.role in PROTECTED and kind not in FLOATS:
        raise RequestError(
            f"--type '{pattern}={kind.name}' fits '{name}' ({slot.role.value}), which is not written below 16 bits; "
            "narrow the pattern"
        )
    if slot.shape[-1] % block_size(kind):
        raise RequestError(
            f"--type '{pattern}={kind.name}' fits '{name}', whose rows of {slot.shape[-1]} are no multiple of "
            f"{block_size(kind)}"
        )
    return kind


def override(text: str) -> tuple[str, Type]:
    """Parses `PATTERN=TYPE`. Raises RequestError."""
    pattern, equals, kind = text.rpartition("=")
    if not equals or not pattern:
        raise RequestError(f"--type '{text}': wanted PATTERN=TYPE, as in 'blk.*.ffn_down_exps=Q4_K'")
    return pattern, type_named(kind)
