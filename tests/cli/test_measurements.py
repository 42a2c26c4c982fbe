"""`jobmeter measurements`, and the page that is made of it."""

from __future__ import annotations

import json
from pathlib import Path

from jobmeter.cli.measurements import listing, markdown
from jobmeter.collectors import load_all
from tests.running import ROOT, meter


def test_every_measurement_is_listed_with_its_description() -> None:
    keys = [m.key for collector in load_all() for m in collector.measurements]
    rows = listing()
    assert keys == [row["key"] for row in rows]
    for row in rows:
        assert {"key", "source", "unit", "kind", "across", "quality", "help", "default", "available"} <= row.keys()
        assert row["available"] or row["why"]


def test_the_documentation_of_measurements_is_what_the_code_says() -> None:
    assert markdown() + "\n" == Path(ROOT, "docs", "measurements.md").read_text(), (
        "jobmeter measurements --markdown > docs/measurements.md"
    )


def test_rows_are_json_that_can_be_read() -> None:
    assert json.loads(json.dumps(listing())) == listing()


def test_a_key_that_this_kernel_does_not_provide_is_not_available_here() -> None:
    rows = {row["key"]: row for row in listing()}
    done = meter("sleep", "1.2", options=["--measurements", "cgroup_*,perf_*"])
    for key, row in rows.items():
        if row["source"] in ("cgroup", "perf"):
            assert row["available"] == (key in done.record["measurements"]), key
