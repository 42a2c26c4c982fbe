"""The filters that select runs, shared by `ls`, `stats`, `plot` and others."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from jobmeter.cli.shared.options import Parser, option_type
from jobmeter.model import Status
from jobmeter.moments import moment
from jobmeter.settings import label, one_of

if TYPE_CHECKING:
    from jobmeter.store import Selection

STATUSES = tuple(status.value for status in Status)
FILTERS = ("name", "status", "label", "since", "until", "where")
"""The options that `add_filter_options` adds."""


def add_filter_options(parser: Parser) -> None:
    add = parser.add_argument
    add("--name", metavar="GLOB", action="append", default=[], help="runs of this name; may be given again")
    status = option_type("--status", one_of(*STATUSES))
    add("--status", metavar="STATUS", action="append", default=[], type=status, help=", ".join(STATUSES))
    labels = option_type("--label", label)
    add("--label", metavar="KEY=VALUE", action="append", default=[], type=labels, help="runs with this label")
    when = "2h (ago), today, yesterday, 2026-01-31 or 2026-01-31T12:00"
    add(
        "--since",
        metavar="TIME",
        type=option_type("--since", moment),
        help=f"runs that started at this time or later: {when}",
    )
    add("--until", metavar="TIME", type=option_type("--until", moment), help="runs that started before this time")
    add("--where", metavar="EXPRESSION", help="""as in: memory_peak > 4GiB and status = "oom" """.strip())


def selection(options: argparse.Namespace) -> Selection:
    """The selection that the options of `add_filter_options` describe."""
    from jobmeter.store import Selection

    return Selection(
        names=options.name,
        statuses=options.status,
        labels=dict(options.label),
        since=options.since,
        until=options.until,
        where=options.where,
    )
