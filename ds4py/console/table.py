"""Formats tables and units as plain text, the same on a terminal and in a file."""

from collections.abc import Sequence


def table(rows: Sequence[Sequence[str]], *, indent: int = 2) -> str:
    """Aligns rows of equal length in columns; a column whose cells all begin with a digit is set to the right."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    numeric = [all(row[i][:1].isdigit() for row in rows) for i in range(len(widths))]

    def line(row: Sequence[str]) -> str:
        cells = (
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(row, widths, numeric, strict=True)
        )
        return " " * indent + "  ".join(cells).rstrip()

    return "\n".join(line(row) for row in rows)


def size(count: int) -> str:
    """Formats a number of bytes in binary units, such as `2.58 GiB`."""
    value = float(count)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if value < 1024:
            return f"{value:.0f} B" if unit == "B" else f"{value:.2f} {unit}"
        value /= 1024
    return f"{value:.2f} TiB"


def quantity(count: int) -> str:
    """Formats a number of parameters, such as `13.27 B`."""
    value = float(count)
    for unit in ("", " K", " M"):
        if value < 1000:
            return f"{value:.0f}" if not unit else f"{value:.2f}{unit}"
        value /= 1000
    return f"{value:.2f} B"
