"""Values on a command line, checked: what is wrong is said before anything is loaded."""

import argparse

from ds4py.constants import MAX_ROWS


def positive(text: str) -> int:
    """Converts a whole number above 0."""
    if (found := int(text)) < 1:
        raise argparse.ArgumentTypeError(f"{found}, wanted 1 or more")
    return found


def position(text: str) -> int:
    """Converts a whole number, 0 or more."""
    if (found := int(text)) < 0:
        raise argparse.ArgumentTypeError(f"{found}, wanted 0 or more")
    return found


def rows(text: str) -> int:
    """Converts a number of rows of a verify, 1 to 16."""
    if (found := positive(text)) > MAX_ROWS:
        raise argparse.ArgumentTypeError(f"{found}, wanted {MAX_ROWS} or fewer")
    return found


def share(text: str) -> float:
    """A number from 0 to 1."""
    if not 0 <= (found := float(text)) <= 1:
        raise argparse.ArgumentTypeError(f"{found}, wanted 0 to 1")
    return found


def prompts(text: str) -> list[int]:
    """Comma-separated numbers of tokens."""
    return [positive(each) for each in text.split(",")]


def row_numbers(text: str) -> list[int]:
    """Comma-separated numbers of rows of a verify."""
    return [rows(each) for each in text.split(",")]
