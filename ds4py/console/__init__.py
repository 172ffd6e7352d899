"""Holds what the programs `ds4py` and `deepseek4-quantize` share: flags, exit codes, progress bars, tables."""

from ds4py.console import exits
from ds4py.console.arguments import Parser, PrintVersion, number
from ds4py.console.exits import UsageError
from ds4py.console.guarded import guarded
from ds4py.console.progress import Bar
from ds4py.console.table import quantity, size, table

__all__ = ["Bar", "Parser", "PrintVersion", "UsageError", "exits", "guarded", "number", "quantity", "size", "table"]
