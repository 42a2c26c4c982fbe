"""`sacct -P`: sacct.txt is of a real Slurm 22.05, sacct_older.txt by hand in the form of older ones."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from jobmeter.errors import UsageError
from jobmeter.exchange.foreign import Item
from tests.exchange.reading import FIXTURES, figure, named, read, runs, unfinished, unusable, written

REAL = read(FIXTURES / "sacct.txt")
OLDER = read(FIXTURES / "sacct_older.txt")
HEADER = "JobID|State|Elapsed|MaxRSS\n"


def test_a_job_and_its_steps_are_one_run() -> None:
    names = ["train", "quick", "fails", "dies", "toobig", "steps", "late", "cancelme", "arr", "arr"]
    assert names == [run.record["name"] for run in runs(REAL)]
    assert [] == unusable(REAL)


def test_memory_stands_on_the_batch_step_and_becomes_the_jobs() -> None:
    train = named(REAL, "train")
    assert (219732 * 1024, "slurm_max_rss", "sampled") == figure(train, "memory_peak_bytes")
    assert (2.059, "slurm_cpu_seconds", "sampled") == figure(train, "cpu_seconds")
    assert (0.516, 1.543) == (
        train["measurements"]["slurm_user_seconds"]["total"],
        train["measurements"]["slurm_system_seconds"]["total"],
    )


def test_the_largest_of_several_tasks_is_the_least_the_job_had() -> None:
    assert (95316 * 1024, "slurm_max_rss", "at least") == figure(named(REAL, "steps"), "memory_peak_bytes")


def test_memory_that_was_never_sampled_is_absent() -> None:
    quick = named(REAL, "quick")
    assert None is figure(quick, "memory_peak_bytes")
    assert {"slurm_cpu_seconds", "slurm_user_seconds"} == quick["measurements"].keys()


def test_memory_of_0_of_a_job_that_was_killed_for_it_is_absent() -> None:
    grow = named(OLDER, "grow")
    assert "slurm_max_rss" not in grow["measurements"]
    assert {"status": "oom", "exit_code": None, "signal": None} == grow["outcome"]


def test_cpu_time_of_a_killed_job_is_at_least_that() -> None:
    # It held a core for 0.1 s; Slurm knows of the shell's 2 ms alone.
    assert (0.002, "slurm_cpu_seconds", "at least") == figure(named(REAL, "toobig"), "cpu_seconds")


def test_no_cpu_time_at_all_is_none_known() -> None:
    assert {} == named(OLDER, "queued")["usage"]


@pytest.mark.parametrize(
    ("items", "name", "status", "code", "signal"),
    [
        (REAL, "train", "completed", 0, None),
        (REAL, "fails", "failed", 3, None),
        (REAL, "dies", "killed", None, 9),
        (REAL, "late", "timeout", None, 15),
        (REAL, "cancelme", "cancelled", None, 15),
        (OLDER, "queued", "cancelled", None, None),
        (OLDER, "node", "lost", 1, None),
    ],
)
def test_the_outcome_follows_from_state_and_exit_code(
    items: list[Item],
    name: str,
    status: str,
    code: int | None,
    signal: int | None,
) -> None:
    assert {"status": status, "exit_code": code, "signal": signal} == named(items, name)["outcome"]


@pytest.mark.parametrize(
    ("items", "name", "requested"),
    [
        (REAL, "train", {"cpus": 1, "memory_bytes": 500 << 20, "runtime_seconds": 300}),
        (REAL, "steps", {"cpus": 2, "memory_bytes": 600 << 20, "runtime_seconds": 120}),
        (OLDER, "grow", {"cpus": 4, "memory_bytes": 8 << 30, "runtime_seconds": 2 * 86400}),  # 4Gn on 2 nodes
        (OLDER, "percpu", {"cpus": 4, "memory_bytes": 8 << 30}),  # 2Gc, UNLIMITED
        (OLDER, "queued", {"runtime_seconds": 3600}),  # 0n
    ],
)
def test_what_was_requested_is_the_requirement(
    items: list[Item],
    name: str,
    requested: dict[str, float],
) -> None:
    assert requested == named(items, name)["requirement"]


def test_days_and_hours_of_elapsed_and_total_cpu() -> None:
    grow = named(OLDER, "grow")
    assert 86400 + 2 * 3600 + 3 * 60 + 4 == grow["wall_seconds"]
    assert (3723.0, "slurm_cpu_seconds", "at least") == figure(grow, "cpu_seconds")
    assert 306.7 == named(OLDER, "percpu")["usage"]["cpu_seconds"]["value"]
    assert round(1.5 * 2**30) == named(OLDER, "percpu")["usage"]["memory_peak_bytes"]["value"]


def test_without_conversion_numbers_are_bytes_seconds_and_minutes() -> None:
    first = runs(read(FIXTURES / "sacct_noconvert.txt"))[0].record
    assert 225005568 == first["usage"]["memory_peak_bytes"]["value"]
    assert (6.0, 300.0) == (first["wall_seconds"], first["requirement"]["runtime_seconds"])


@pytest.mark.parametrize(
    ("column", "text", "joules"),
    [
        ("ConsumedEnergy", "512", 512),
        ("ConsumedEnergy", "1.50K", 1500),
        ("ConsumedEnergy", "2.25M", 2_250_000),
        ("ConsumedEnergy", "3G", 3_000_000_000),
        ("ConsumedEnergyRaw", "2251799", 2_251_799),
    ],
)
def test_the_letters_of_energy_are_powers_of_1000(tmp_path: Path, column: str, text: str, joules: int) -> None:
    content = f"JobID|State|Elapsed|{column}\n1|COMPLETED|00:00:10|{text}\n"
    (run,) = runs(read(written(tmp_path, content)))
    energy: Any = run.record["measurements"]["slurm_energy"]
    assert joules == energy["total"]


def test_energy_that_is_none_is_refused(tmp_path: Path) -> None:
    content = "JobID|State|Elapsed|ConsumedEnergy\n1|COMPLETED|00:00:10|1.5KB\n2|COMPLETED|00:00:10|9999999P\n"
    assert [
        "line 2: job 1: consumedenergy '1.5KB' is not an amount of energy",
        "line 3: job 2: consumedenergy '9999999P' is more than can be",
    ] == unusable(read(written(tmp_path, content)))


def test_a_job_that_still_runs_is_left_for_later() -> None:
    assert 1 == unfinished(REAL)


def test_times_are_of_the_zone_that_tz_names(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setenv("TZ", "Europe/Berlin")
        time.tzset()
        record = named(read(FIXTURES / "sacct_older.txt"), "percpu")
    time.tzset()
    assert ("2024-05-02T08:00:00.000Z", "2024-05-02T08:10:00.000Z") == (record["started"], record["ended"])


def test_labels_name_source_and_job() -> None:
    labels = [run.record["labels"] for run in runs(REAL)]
    assert {"source": "slurm", "job_id": "1", "partition": "main"} == labels[0]
    assert ["7_1", "7_2"] == [label["job_id"] for label in labels[-2:]]


def test_ids_are_the_same_each_time_and_differ_between_jobs() -> None:
    first = [run.record["id"] for run in runs(REAL)]
    assert first == [run.record["id"] for run in runs(read(FIXTURES / "sacct.txt"))]
    assert len(first) == len(set(first))


def test_every_figure_carries_its_description() -> None:
    for run in runs([*REAL, *OLDER]):
        assert run.record["measurements"].keys() == run.described.keys()
        for described in run.described.values():
            assert {"unit", "kind", "across", "quality", "help"} == described.keys() - {"gauge"}


def test_steps_without_their_job_make_a_run_of_their_own(tmp_path: Path) -> None:
    items = read(written(tmp_path, HEADER + "5.batch|COMPLETED|00:00:10|100K\n5.0|FAILED|00:00:05|300K\n"))
    record = runs(items)[0].record
    assert ("5", "failed", 300 * 1024) == (
        record["name"],
        record["outcome"]["status"],
        record["usage"]["memory_peak_bytes"]["value"],
    )


def test_a_bad_row_costs_only_itself(tmp_path: Path) -> None:
    content = (
        HEADER + "1|COMPLETED|00:00:10|\n1.batch|COMPLETED|00:00:10|100K\n"
        "2|COMPLETED|-00:00:10|\n3|COMPLETED\n4|WEIRD|00:00:01|\n|COMPLETED|00:00:01|\n6|COMPLETED|00:00:10|much\n"
        "7|COMPLETED|00:00:10|99999999999999T\n8|COMPLETED|00:00:09|\n9|CANCELLED by 7|00:00:09|\n"
        "1.0|COMPLETED|00:00:01|5K\n"
    )
    items = read(written(tmp_path, content))
    assert ["1", "8", "9"] == [run.record["name"] for run in runs(items)]
    assert [
        "line 5: has 2 cells where the header has 4",
        "line 4: job 2: Elapsed '-00:00:10' is not a time like 1-02:03:04 or 02:03.500",
        "line 7: has no job id",
        "line 6: job 4: State 'WEIRD' is not a state of Slurm",
        "line 8: job 6: maxrss 'much' is not an amount of bytes",
        "line 9: job 7: maxrss '99999999999999T' is more than can be",
        "line 12: a step of job 1 is not next to its job. Sort the rows by job",
    ] == unusable(items)


@pytest.mark.parametrize("own", [b"5|COMPLETED", b"5|\xff|00:00:10|", b"|COMPLETED|00:00:10|"])
def test_a_job_whose_own_row_cannot_be_used_is_left_out_and_named(tmp_path: Path, own: bytes) -> None:
    content = (
        HEADER.encode() + b"4|COMPLETED|00:00:10|\n" + own + b"\n5.batch|COMPLETED|00:00:10|100K\n"
        b"5.0|COMPLETED|00:00:05|300K\n6.batch|COMPLETED|00:00:07|200K\n5.1|COMPLETED|00:00:01|\n"
    )
    items = read(written(tmp_path, content))
    assert ["4", "6"] == [run.record["name"] for run in runs(items)]
    assert [
        "line 4: job 5: the row above cannot be used, and may be the job's own. Correct that row",
        "line 7: a step of job 5 is not next to its job. Sort the rows by job",
    ] == unusable(items)[1:]


def test_a_row_of_a_step_that_cannot_be_used_costs_only_itself(tmp_path: Path) -> None:
    content = HEADER + "5|COMPLETED|00:00:10|\n5.batch|COMPLETED\n5.0|COMPLETED|00:00:05|300K\n"
    items = read(written(tmp_path, content))
    assert (["5"], 1) == ([run.record["name"] for run in runs(items)], len(unusable(items)))


def test_a_row_that_is_not_utf8_costs_only_itself(tmp_path: Path) -> None:
    items = read(written(tmp_path, HEADER.encode() + b"1|COMPLETED|00:00:01|\n2|\xff\xfe|00:00:01|\n"))
    assert (1, ["line 3: is not UTF-8 text"]) == (len(runs(items)), unusable(items))


def test_a_table_made_without_p_is_no_such_file(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="its format is not recognised"):
        read(written(tmp_path, "JobID           JobName  Partition\n------------ ---------- ----------\n1  a  main\n"))
