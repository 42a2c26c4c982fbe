"""Tables in Markdown, to be pasted into a page."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

MIB = 1 << 20


def print_table(title: str, head: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    lines = [list(head), *(list(row) for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(head))]
    print(f"\n### {title}\n")
    for number, line in enumerate(lines):
        print("| " + " | ".join(cell.ljust(width) for cell, width in zip(line, widths)) + " |")
        if number == 0:
            print("|" + "|".join("-" * (width + 2) for width in widths) + "|")
    print(flush=True)


def times(value: float | None, base: float | None) -> str:
    """A ratio, or a dash where there is none."""
    if value is None or not base:
        return "–"
    ratio = value / base
    return f"{ratio:.2f}×" if ratio < 10 else f"{ratio:.0f}×"


def seconds(value: float | None) -> str:
    if value is None:
        return "–"
    return f"{value * 1000:.1f} ms" if abs(value) < 0.1 else f"{value:.2f} s"


def mib(value: float | None) -> str:
    return "–" if value is None else f"{value / MIB:.1f} MiB" if value < 10 * MIB else f"{value / MIB:.0f} MiB"
