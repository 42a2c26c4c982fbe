"""Writes the sources of each headline figure into docs/record.md, from the table in `analyse/headline_table.py`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from jobmeter.analyse.headline_table import HEADLINE, HeadlineFigure

PAGE = Path(__file__).resolve().parent.parent / "docs" / "record.md"
_STATISTICS = {"min": "minimum"}
_MARKED = re.compile(r"(<!-- sources -->\n).*?(<!-- end of sources -->)", re.DOTALL)


def table() -> Iterator[str]:
    """The lines of a Markdown table, one row a figure."""
    yield "| figure | what it is | sources, the best first |"
    yield "|---|---|---|"
    for row in HEADLINE:
        sources = ", ".join(f"`{key}`" for key in row.sources)
        yield f"| `{row.name}` | {_meaning(row)} | {sources} |"


def _meaning(row: HeadlineFigure) -> str:
    """The docstring of the function that computes the figure; else its statistic of the first source measured."""
    rule = (row.reduce.__doc__ or "").strip() if row.reduce is not None else ""
    return (
        " ".join(rule.split())
        or f"The {_STATISTICS.get(row.statistic, row.statistic)} of the first source that was measured."
    )


def embedded(text: str) -> str:
    """The page with its table brought up to date."""
    return _MARKED.sub(lambda match: match[1] + "\n".join(["", *table(), "", ""]) + match[2], text)


if __name__ == "__main__":
    PAGE.write_text(embedded(PAGE.read_text()))
