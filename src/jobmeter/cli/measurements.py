"""`jobmeter measurements`: every key with what it means, and whether it can be measured here."""

from __future__ import annotations

import json
import sys
from typing import Any

from jobmeter.cli.shared.options import Parser
from jobmeter.cli.shared.output import warn
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
        print(markdown())
        return 0
    rows = [row for row in listing() if all(text in row["key"] for text in options.pattern)]
    if options.json:
        print(json.dumps(rows, indent=2))
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
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("key", "unit", "kind", "quality", "here", "help"):
        table.add_column(heading, no_wrap=heading != "help")
    for row in rows:
        here = "yes" if row["available"] else "no"
        table.add_row(row["key"], row["unit"], row["kind"], row["quality"], here, row["help"])
    Console(file=sys.stdout, width=None if sys.stdout.isatty() else 160).print(table)
    reasons: dict[str, list[str]] = {}
    for row in rows:
        if not row["available"]:
            reasons.setdefault(row["why"], []).append(row["key"])
    for why, keys in reasons.items():
        print(f"not here: {', '.join(keys)}: {why}", file=sys.stderr)


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
