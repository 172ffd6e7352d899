"""Checks whether a GGUF file is a complete target, or a complete drafter in any contract."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from ds4py import _native
from ds4py.errors import FormatError, PairError
from ds4py.json_types import Json
from ds4py.tokenizer import Tokenizer

from . import drafter_file
from .presets import PROTECTED
from .quantise import FLOATS
from .roles import Role, role_of
from .source.gguf_file import GgufSource

DRAFTER_MARKERS = ("mtp.0.e_proj.weight", "mtp.0.h_proj.weight", "mtp.0.enorm.weight")


@dataclass
class CheckResult:
    """The facts of a sound file, and warnings about what is unusual in it."""

    kind: str
    facts: Json
    warnings: list[str] = field(default_factory=list)


def check(path: Path, target: Path | None = None) -> CheckResult:
    """Checks headers, keys, and the presence, shape and type of every tensor. It does not check values.

    Raises FormatError naming a key or tensor that is wrong. Raises PairError with everything about a drafter that does
    not fit `target`.
    """
    source = GgufSource(path)
    is_drafter = drafter_file.contract_of(source) is not None
    if source.packed:
        _native.packing(_native.GgufFile.open(path), drafter=is_drafter)
    if is_drafter:
        return check_drafter(source, target)
    if target is not None:
        raise FormatError(f"{path}: is not a drafter, so it has no target to fit; leave --target out")
    vanilla = next((name for name in DRAFTER_MARKERS if name in source.tensors), None)
    if vanilla is not None and "token_embd.weight" not in source.tensors:
        raise FormatError(f"{path}: holds a vanilla MTP block (tensor '{vanilla}'), not a DSpark drafter")
    return check_target(path, source)


def check_target(path: Path, source: GgufSource) -> CheckResult:
    """Checks a target by the rules of the runtime's own loader."""
    file = _native.GgufFile.open(path)
    found = _native.read_hyperparameters(file)
    _native.check_weights(file, found)
    metadata = file.metadata()
    tokenizer = Tokenizer.from_metadata(metadata, vocab_size=found.vocab)
    warnings = [f"tensor '{name}' has no use in a target" for name in source.tensors if role_of(name) is None]
    warnings += coarse_warnings(source, {name: role_of(name) for name in source.tensors})
    if not tokenizer.has_vocabulary:
        warnings.append("the file carries no vocabulary: it takes token ids alone")
    elif tokenizer.chat_template is None:
        warnings.append("the file carries no chat template")
    facts = {"layers": found.layers, "hidden": found.hidden, "vocab": found.vocab, "experts": found.experts}
    return CheckResult("target", {**facts, **common_facts(source)}, warnings)


def check_drafter(source: GgufSource, target: Path | None) -> CheckResult:
    """Checks a drafter by its contract, and then against its target if one is given."""
    found = drafter_file.read(source)
    warnings = coarse_warnings(source, {name: role_of(inner) for inner, name in found.names.items()})
    if target is not None:
        file = _native.GgufFile.open(target)
        wrong = drafter_file.mismatches(found, _native.read_hyperparameters(file))
        if wrong:
            raise PairError(f"{source.paths[0]} does not fit {target}: " + "; ".join(wrong))
    facts = {
        "contract": found.contract.value,
        "stages": found.stages,
        "block": found.block,
        "rank": found.rank,
        "taps": ",".join(map(str, found.taps)),
        "noise": found.noise,
        "confidence": "yes" if found.confidence else "no",
    }
    return CheckResult("drafter", {**facts, **common_facts(source)}, warnings)


def coarse_warnings(source: GgufSource, roles: dict[str, Role | None]) -> list[str]:
    """Warns of tensors that are quantised although their role needs 16 bits."""
    return [
        f"tensor '{name}' ({role.value}) is {source.tensors[name].kind.name}, better not below 16 bits"
        for name, role in roles.items()
        if role in PROTECTED and source.tensors[name].kind not in FLOATS
    ]


def common_facts(source: GgufSource) -> Json:
    """Gathers the facts that are reported for every file."""
    kinds: dict[str, int] = {}
    for tensor in source.tensors.values():
        kinds[tensor.kind.name] = kinds.get(tensor.kind.name, 0) + 1
    types = ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items(), key=lambda item: -item[1]))
    return {
        "architecture": source.architecture() + (" (packed for the CPU)" if source.packed else ""),
        "tensors": types,
        "bytes": sum(path.stat().st_size for path in source.paths),
        "shards": len(source.paths),
    }
