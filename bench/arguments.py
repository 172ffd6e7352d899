"""Parses values of command lines, so that a wrong value is reported before anything is loaded."""

import argparse

MOST_ROWS = 16
"""The most rows of a verify."""


def positive(text: str) -> int:
    """Parses a whole number above 0."""
    if (found := int(text)) < 1:
        raise argparse.ArgumentTypeError(f"{found}, wanted 1 or more")
    return found


def position(text: str) -> int:
    """Parses a whole number from 0 on."""
    if (found := int(text)) < 0:
        raise argparse.ArgumentTypeError(f"{found}, wanted 0 or more")
    return found


def rows(text: str) -> int:
    """Parses a number of rows of a verify."""
    if (found := positive(text)) > MOST_ROWS:
        raise argparse.ArgumentTypeError(f"{found}, wanted {MOST_ROWS} or fewer")
    return found


def share(text: str) -> float:
    """Parses a number from 0 to 1."""
    if not 0 <= (found := float(text)) <= 1:
        raise argparse.ArgumentTypeError(f"{found}, wanted 0 to 1")
    return found


def prompts(text: str) -> list[int]:
    """Parses numbers of tokens between commas."""
    return [positive(each) for each in text.split(",")]


def row_numbers(text: str) -> list[int]:
    """Parses numbers of rows of a verify between commas."""
    return [rows(each) for each in text.split(",")]
