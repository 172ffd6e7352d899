"""Compares two independent runs of the recipe: tokens per cycle of each, by domain and temperature."""

import argparse
from pathlib import Path

from tiny.evaluation import Evaluation, compare, comparison_table


def main() -> None:
    """Prints the table and the largest difference."""
    parser = argparse.ArgumentParser(prog="python -m tiny.evaluation", description=__doc__)
    parser.add_argument("runs", type=Path, nargs=2, metavar="WORK", help="work folder with an evaluation.json")
    first, second = (Evaluation.read(work / "evaluation.json") for work in parser.parse_args().runs)
    comparison = compare(first, second)
    print(comparison_table(comparison))
    largest = comparison.largest
    print(f"\nlargest: {largest.domain} at temperature {largest.temperature:g}, {100 * largest.relative:+.1f} %")


if __name__ == "__main__":
    main()
