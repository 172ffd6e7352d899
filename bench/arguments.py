"""Values on a command line, checked: what is wrong is said before anything is loaded."""

import argparse

MOST_ROWS = 16
"""Rows of a verify, at most."""


def positive(text: str) -> int:
    """A whole number above 0."""
    if (found := int(text)) < 1:
        raise argparse.ArgumentTypeError(f"{found}, wanted 1 or more")
    return found


def position(text: str) -> int:
    """A whole number, 0 or more."""
    if (found := int(text)) < 0:
        raise argparse.ArgumentTypeError(f"{found}, wanted 0 or more")
    return found


def rows(text: str) -> int:
    """Rows of a verify."""
    if (found := positive(text)) > MOST_ROWS:
        raise argparse.ArgumentTypeError(f"{found}, wanted {MOST_ROWS} or fewer")
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
