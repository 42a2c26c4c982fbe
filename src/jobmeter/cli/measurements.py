"""`jobmeter measurements`: every key with what it means, and whether it can be measured here."""

from __future__ import annotations

from typing import Any

from jobmeter.cli.shared.options import Parser
from jobmeter.cli.shared.output import print_json, print_lines, print_to_stderr, warn
from jobmeter.collectors import load_all, load_builtin, unavailable


def main(arguments: list[str]) -> int:
    parser = Parser("measurements", "List every measurement: key, unit, kind, source, help, and whether it works here.")
    parser.add_argument("pattern", nargs="*", metavar="PATTERN", help="only keys that contain this text")
    parser.add_argument("--json", action="store_true", help="print an array of objects")
    parser.add_argument(
        "--markdown", action="store_true", help="print tables for documentation, the same on every machine"
    )
    options = parser.parse_args(arguments)
    if options.markdown:
        print_lines(markdown().split("\n"))
        return 0
    rows = [row for row in listing() if all(text in row["key"] for text in options.pattern)]
    if options.json:
        print_json(rows)
    else:
        _print_table(rows)
    return 0


def listing() -> list[dict[str, Any]]:
    """One object per measurement; `why` only where it is not available."""
    rows = []
    for collector in load_all(warn):
        missing = unavailable(collector)
        for m in collector.measurements:
            row = {
                "key": m.key,
                "source": collector.name,
                **m.described(),
                "default": m.key in collector.default,
                "available": m.key not in missing,
            }
            rows.append({**row, "why": missing[m.key]} if m.key in missing else row)
    return rows


def _print_table(rows: list[dict[str, Any]]) -> None:
    from jobmeter.cli.shared.tables import print_table, terminal
    from jobmeter.report.table_layout import Column

    headings = ("key", "unit", "kind", "quality", "here", "help")
    cells = [[row.get(name, "yes" if row["available"] else "no") for name in headings] for row in rows]
    console = terminal()
    if console is None:
        print_table([Column(heading) for heading in headings], cells)
    else:
        from rich.table import Table

        # The help consists of sentences, which are wrapped inside their column.
        table = Table(box=None, pad_edge=False, header_style="bold")
        for heading in headings:
            table.add_column(heading, no_wrap=heading != "help")
        for line in cells:
            table.add_row(*line)
        console.print(table)
    reasons: dict[str, list[str]] = {}
    for row in rows:
        if not row["available"]:
            reasons.setdefault(row["why"], []).append(row["key"])
    print_to_stderr(f"not here: {', '.join(keys)}: {why}" for why, keys in reasons.items())


def markdown() -> str:
    """The page docs/measurements.md, made from the descriptions."""
    lines = [
        "# Measurements",
        "",
        "Made by `jobmeter measurements --markdown`; a test fails when this page and the code differ.",
        "Units are base units; 100 percent is one core. Keys marked * are measured by default.",
    ]
    for collector in load_builtin():
        lines += [
            "",
            f"## {collector.name}_",
            "",
            "| key | unit | kind | across | quality | |",
            "|---|---|---|---|---|---|",
        ]
        for m in collector.measurements:
            star = "\\*" if m.key in collector.default else ""
            lines.append(
                f"| `{m.key}`{star} | {m.unit} | {m.kind.value} | {m.across.value} | {m.quality.value} | {m.help} |"
            )
    return "\n".join(lines)
