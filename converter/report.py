"""Prints the results of `--check` and `--compare`."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from ds4py.console import Bar, exits, size, table
from ds4py.json_types import Json

from .check import check as check_file
from .compare import FileComparison
from .compare import compare as compare_files
from .job import all_cores


def check(args: argparse.Namespace) -> int:
    """Prints the facts of a sound file, and returns the exit code. Raises FormatError for any other file."""
    found = check_file(Path(args.check), None if args.target is None else Path(args.target))
    if args.json:
        print(json.dumps({"kind": found.kind, **found.facts, "warnings": found.warnings}))
        return exits.OK
    facts = {**found.facts, "bytes": size(found.facts["bytes"])}
    fits = "" if args.target is None else f", fits {args.target}"
    print(f"{args.check}: sound {found.kind}{fits}")
    print(table([(name, str(value)) for name, value in facts.items()]))
    for line in found.warnings:
        print("warning: " + line)
    return exits.OK


def compare(args: argparse.Namespace) -> int:
    """Prints errors by role. Returns the exit code of a bad file if the tensors are not the same."""
    first, second = map(Path, args.compare)
    with Bar("comparing", quiet=args.quiet) as bar:
        found = compare_files(first, second, args.threads or all_cores(), bar.update)
    print(json.dumps(as_json(found)) if args.json else render(found))
    return exits.BAD_FILE if found.unpaired else exits.OK


def as_json(found: FileComparison) -> Json:
    """Builds the object that `--json` prints."""
    roles = {
        role.value: {"tensors": each.tensors, "relative_error": each.relative, "greatest_difference": each.greatest}
        for role, each in found.roles.items()
    }
    return {"roles": roles, "unpaired": found.unpaired}


def render(found: FileComparison) -> str:
    """Formats one line for each role, and the tensors that could not be compared."""
    rows = [("role", "tensors", "relative error", "greatest difference")]
    for role, each in sorted(found.roles.items(), key=lambda item: -item[1].relative):
        rows.append((role.value, str(each.tensors), f"{each.relative:.3e}", f"{each.greatest:.3e}"))
    return "\n".join([table(rows), *found.unpaired])
