"""Formats tables and sizes as plain text, the same for a terminal and for a file."""

from collections.abc import Sequence


def table(rows: Sequence[Sequence[str]], *, indent: int = 2) -> str:
    """Aligns the columns of rows of equal length. A column whose cells all begin with a digit is aligned right."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    numeric = [all(row[i][:1].isdigit() for row in rows) for i in range(len(widths))]

    def line(row: Sequence[str]) -> str:
        cells = (
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(row, widths, numeric, strict=True)
        )
        return " " * indent + "  ".join(cells).rstrip()

    return "\n".join(line(row) for row in rows)


def size(count: int, *, digits: int = 2) -> str:
    """Formats bytes in binary units, such as `2.58 GiB`, with `digits` decimals."""
    value = float(count)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if value < 1024:
            return f"{value:.0f} B" if unit == "B" else f"{value:.{digits}f} {unit}"
        value /= 1024
    return f"{value:.{digits}f} TiB"


def quantity(count: int) -> str:
    """Formats a number of parameters, such as `13.27 B`."""
    value = float(count)
    for unit in ("", " K", " M"):
        if value < 1000:
            return f"{value:.0f}" if not unit else f"{value:.2f}{unit}"
        value /= 1000
    return f"{value:.2f} B"
