"""What is common to the runs of other tools: their keys, their place in the headline, their ids."""

from __future__ import annotations

from typing import Any

import pytest

from jobmeter.analyse import headline, headline_memory, headline_table
from jobmeter.exchange import duct, gnutime, nextflow, slurm
from jobmeter.exchange.foreign import Facts, run_of, stable_id
from jobmeter.model import Measurement, Outcome, Status

SOURCES = (duct, gnutime, nextflow, slurm)
ALL = {measurement.key: measurement for source in SOURCES for measurement in source.MEASUREMENTS}
UNITS = {"bytes", "seconds", "percent", "count", "joules"}


def test_keys_begin_with_their_source_and_are_described() -> None:
    for source in SOURCES:
        for measurement in source.MEASUREMENTS:
            assert measurement.key.startswith(f"{source.SOURCE}_")
            assert measurement.unit in UNITS
            assert measurement.quality.value in ("sampled", "at least")
            assert measurement.help.endswith(".")


@pytest.mark.parametrize(
    "order",
    [
        (*headline.CPU_SECONDS, *headline.OTHERS_CPU_SECONDS),
        headline.CPU_PERCENT, headline.READ_BYTES, headline.WRITE_BYTES,
        headline_memory.MEMORY_TOTAL, headline_memory.SINGLE_PROCESS,
    ],
)  # fmt: skip
def test_what_others_measured_is_used_last(order: tuple[str, ...]) -> None:
    theirs = [key.startswith(tuple(f"{source.SOURCE}_" for source in SOURCES)) for key in order]
    assert sorted(theirs) == theirs
    assert True in theirs
    assert [] == [key for key, other in zip(order, theirs) if other and key not in ALL]


def test_our_own_figure_goes_before_theirs() -> None:
    summary: dict[str, dict[str, Any]] = {
        "ps_rss_total": {"peak": 5},
        "slurm_max_rss": {"peak": 9},
        "ps_cpu_seconds": {"total": 1.0},
        "slurm_cpu_seconds": {"total": 9.0},
    }
    usage = headline_table.usage(summary, {}, 10.0)
    assert ("ps_rss_total", "ps_cpu_seconds") == (usage["memory_peak_bytes"]["from"], usage["cpu_seconds"]["from"])


def facts(**more: Any) -> Facts:
    return Facts("slurm", ("t", "1"), "file: line 2", "job", Outcome(Status.COMPLETED, 0), [], **more)


@pytest.mark.parametrize(
    ("times", "started", "ended"),
    [
        ({"started": 100.0, "wall_seconds": 5.0}, 100, 105),
        ({"ended": 105.0, "wall_seconds": 5.0}, 100, 105),
        ({"started": 100.0, "ended": 107.0, "wall_seconds": 5.0}, 100, 107),
        ({"written": 105.0, "wall_seconds": 5.0}, 100, 105),
        ({"started": 100.0}, 100, None),
    ],
)
def test_of_start_end_and_duration_two_give_the_third(times: dict[str, float], started: int, ended: int | None) -> None:
    record = run_of(facts(**times)).record
    assert f"1970-01-01T00:01:{started - 60}.000Z" == record["started"]
    assert (None if ended is None else f"1970-01-01T00:01:{ended - 60}.000Z") == record.get("ended")


def test_what_is_not_known_is_not_in_the_record() -> None:
    record = run_of(facts(started=100.0)).record
    assert not {"user", "cwd", "ended", "wall_seconds"} & record.keys()
    assert {"source": "slurm"} == record["labels"]


def test_a_figure_without_a_value_leaves_no_trace() -> None:
    empty: list[tuple[Measurement, dict[str, float]]] = [(ALL["slurm_max_rss"], {})]
    run = run_of(facts(started=100.0)._replace(figures=empty))
    assert ({}, {}) == (run.record["measurements"], run.described)


def test_ids_come_from_identity_alone() -> None:
    assert stable_id("slurm", "t", "1") == run_of(facts(started=100.0)).record["id"]
    assert stable_id("slurm", "t1") != stable_id("slurm", "t", "1")
    assert 12 == len(stable_id("x"))
