"""Evaluates a pair through the runtime: held-out loss, acceptance and calibration. It needs no torch."""

from tiny.evaluation.comparison import Comparison, Difference, compare
from tiny.evaluation.evaluate import evaluate
from tiny.evaluation.results import Evaluation, Lengths
from tiny.evaluation.tables import comparison_table, sample_texts, tables

__all__ = [
    "Comparison",
    "Difference",
    "Evaluation",
    "Lengths",
    "compare",
    "comparison_table",
    "evaluate",
    "sample_texts",
    "tables",
]
