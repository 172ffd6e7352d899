"""Which type every tensor is written as: presets by role, and overrides by name."""

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
"""Roles with one type whatever is asked for: kernels read them as such."""

PROTECTED = (Role.HC, Role.APE, Role.SMALL, Role.CONFIDENCE)
"""Roles that are not written below 16 bits: they are small, and what they decide flips by rounding."""


@dataclass(frozen=True)
class Preset:
    """The types that each group of roles is written as."""

    text: str
    file_type: LlamaFileType
    gate_up: Type
    down: Type
    dense: Type = Q8
    tables: Type = Q8
    small: Type = BF16
    wide: Type = F32

    def type_of(self, role: Role) -> Type:
        """The type of a role."""
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
"""In every preset norms, sinks, biases and hyper-connections are F32; router, indexer and compressors have 16 bits."""


DEFAULT = "mxfp4"


@dataclass
class TypeSelector:
    """Chooses a type for each tensor; keeps what it had to change, as lines for a person.

    `overrides` are (pattern, type), the last that fits counts.
    """

    preset: Preset
    overrides: Sequence[tuple[str, Type]] = ()
    notes: list[str] = field(default_factory=list)
    used: set[str] = field(default_factory=set)

    def choose(self, slot: Slot, name: str, *, keep_type: Type | None = None, without_bf16: bool = False) -> Type:
        """The type of a slot that is written as `name`. Raises RequestError for an override that cannot be.

        `keep_type` is a type that stays unless it is overridden. `without_bf16` is for readers that know no
        BF16: it has F16 where the preset has that, and for hyper-connections.
        """
        for pattern, kind in reversed(self.overrides):
            if fnmatchcase(name, pattern) or fnmatchcase(name.removesuffix(".weight"), pattern):
                self.used.add(pattern)
                return checked(slot, name, pattern, kind)
        return self._fitting(slot, name, self._preset(slot.role, without_bf16)) if keep_type is None else keep_type

    def require_all_used(self) -> None:
        """Raises RequestError for an override that fits no tensor."""
        for pattern, _ in self.overrides:
            if pattern not in self.used:
                raise RequestError(f"--type '{pattern}' fits no tensor of the output, or a later one fits all of them")

    def _preset(self, role: Role, without_bf16: bool) -> Type:
        kind = self.preset.type_of(role)
        if without_bf16 and self.preset.dense != F32 and (kind == BF16 or role in (Role.HC, Role.MARKOV)):
            return F16
        return kind

    def _fitting(self, slot: Slot, name: str, kind: Type) -> Type:
        """`kind`, or a wider type where the rows are no whole number of its blocks."""
        columns = slot.shape[-1]
        found = next(each for each in (kind, Q8, F16) if columns % block_size(each) == 0)
        if found != kind:
            self.notes.append(f"{name}: rows of {columns} are no multiple of {block_size(kind)}, {found.name} instead")
        return found


def checked(slot: Slot, name: str, pattern: str, kind: Type) -> Type:
    """An override's type, if the tensor can have it."""
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
    """Parses `pattern=TYPE`. Raises RequestError."""
    pattern, equals, kind = text.rpartition("=")
    if not equals or not pattern:
        raise RequestError(f"--type '{text}': wanted PATTERN=TYPE, as in 'blk.*.ffn_down_exps=Q4_K'")
    return pattern, type_named(kind)
