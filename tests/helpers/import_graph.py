"""The import graph of the project's Python files, by modules and by rooms (folders).

Every import counts: at the top, inside functions, and those for type checkers only. `from ds4py import Session` and
`ds4py.Session` count as an import of the module that defines the name, which the package's `__init__` tells.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

from paths import ROOT

Graph = dict[str, set[str]]
PACKAGES = {"ds4py": ROOT / "ds4py", "ds4py.converter": ROOT / "converter"}
"""Installed packages and the folders they come from."""


@cache
def modules() -> dict[str, Path]:
    """Every module of the installed packages, by its name."""
    found = {}
    for package, folder in PACKAGES.items():
        for file in folder.rglob("*.py"):
            parts = [package, *file.relative_to(folder).with_suffix("").parts]
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = file
    return found


@cache
def parsed(file: Path) -> ast.Module:
    """The syntax tree of a file."""
    return ast.parse(file.read_text(encoding="utf-8"))


@cache
def exported(package: str) -> Mapping[str, str]:
    """Names that a package's `__init__` imports, and the modules that they come from."""
    return {
        alias.asname or alias.name: node.module
        for node in parsed(modules()[package]).body
        if isinstance(node, ast.ImportFrom) and node.module
        for alias in node.names
    }


def defining(module: str, name: str) -> str:
    """The module that defines what `from module import name` brings."""
    if f"{module}.{name}" in modules() or f"{module}.{name}" == "ds4py._native":
        return f"{module}.{name}"
    if module in modules() and modules()[module].name == "__init__.py" and name in exported(module):
        source = exported(module)[name]
        return module if source == module else defining(source, name)
    return module


def imports(file: Path) -> set[str]:
    """The project's modules that a file imports, wherever the import stands."""
    return set(_imports(parsed(file)))


def _imports(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and _ours(node.module):
            yield from (defining(node.module, alias.name) for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if _ours(alias.name) and alias.name != "ds4py")
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "ds4py":
            yield defining("ds4py", node.attr)


def _ours(module: str | None) -> bool:
    return module is not None and module.split(".")[0] == "ds4py"


def module_graph() -> Graph:
    """Every module of the packages with the modules that it imports."""
    return {name: imports(file) - {name} for name, file in modules().items()}


def room_of(module: str) -> str:
    """The room of a module: the folder below `ds4py`, or the file's name where it lies at the root."""
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else "ds4py"


def room_graph() -> Graph:
    """Every room of `ds4py` with the rooms that its modules import. The package's own `__init__` is left out."""
    graph: Graph = {}
    for module, imported in module_graph().items():
        if module != "ds4py":
            graph.setdefault(room_of(module), set()).update(map(room_of, imported - {"ds4py"}))
    return {room: known - {room} for room, known in graph.items()}


def circles(graph: Graph) -> list[list[str]]:
    """The circles of a graph: its strongly connected components of more than one node (Tarjan, 1972)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(node: str) -> None:
        index[node] = low[node] = len(index)
        stack.append(node)
        for other in sorted(graph.get(node, ())):
            if other not in index:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in stack:
                low[node] = min(low[node], index[other])
        if low[node] == index[node]:
            at = stack.index(node)
            component = stack[at:]
            del stack[at:]
            if len(component) > 1:
                found.append(sorted(component))

    for node in sorted(graph):
        if node not in index:
            visit(node)
    return found
