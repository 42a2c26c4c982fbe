"""Which runs a command is about: the filters that `ls`, `stats`, `plot` and others share."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from jobmeter.cli.shared.options import Parser, option_type
from jobmeter.errors import UsageError
from jobmeter.model import Status
from jobmeter.settings import label, one_of
from jobmeter.times import parse_moment
from jobmeter.units import parse_seconds

if TYPE_CHECKING:
    from jobmeter.analyse.stored_run import StoredRun
    from jobmeter.store import Selection, Store

STATUSES = tuple(status.value for status in Status)


def add_store_option(parser: Parser) -> None:
    parser.add_argument("--store", metavar="DIR", help="where runs are stored (default: the XDG data directory)")


def add_filter_options(parser: Parser) -> None:
    add = parser.add_argument
    add("--name", metavar="GLOB", action="append", default=[], help="runs of this name; may be given again")
    status = option_type("--status", one_of(*STATUSES))
    add("--status", metavar="STATUS", action="append", default=[], type=status, help=", ".join(STATUSES))
    labels = option_type("--label", label)
    add("--label", metavar="KEY=VALUE", action="append", default=[], type=labels, help="runs with this label")
    when = "2h (ago), today, yesterday, 2026-01-31 or 2026-01-31T12:00"
    add("--since", metavar="TIME", type=option_type("--since", moment), help=f"started then or later: {when}")
    add("--until", metavar="TIME", type=option_type("--until", moment), help="started before")
    add("--where", metavar="EXPRESSION", help="""as in: memory_peak_bytes > 4GiB and status = "oom" """.strip())


def selection(options: argparse.Namespace) -> Selection:
    """What `add_filter_options` added."""
    from jobmeter.store import Selection

    return Selection(
        names=options.name,
        statuses=options.status,
        labels=dict(options.label),
        since=options.since,
        until=options.until,
        where=options.where,
    )


def named_runs(store: Store, names: Iterable[str]) -> list[StoredRun]:
    """The rows of the runs named by id, prefix, name or `last`, each once. UsageError for an unknown one."""
    from jobmeter.store import Selection

    ids = dict.fromkeys(store.resolve(name) for name in names)
    return [row for run_id in ids for row in store.runs(Selection(where=f'id = "{run_id}"'))]


def moment(text: str, now: float | None = None) -> float:
    """Seconds since 1970 of what people write: a time ago, a day, or an ISO time, local where it names no zone."""
    now = time.time() if now is None else now
    midnight = datetime.fromtimestamp(now).replace(hour=0, minute=0, second=0, microsecond=0)
    word = text.strip().lower()
    if word in ("now", "today", "yesterday"):
        day = midnight - timedelta(days=word == "yesterday")
        return now if word == "now" else day.timestamp()
    try:
        return now - parse_seconds(word.removesuffix("ago"))
    except UsageError:
        pass  # no duration: then a date
    try:
        return parse_moment(text).timestamp()
    except ValueError:
        raise UsageError(
            f"{text!r} is not a time. Write for example 2h, 3d, yesterday, 2026-01-31 or 2026-01-31T12:00."
        ) from None
