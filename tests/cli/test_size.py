"""`jobmeter size`: from histories that are known to what one would write."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from jobmeter.journal.writer import JournalWriter
from jobmeter.kernel.machine import THIS_MACHINE
from jobmeter.kernel.procfs import read_stat
from jobmeter.workflow.plan import load_plan
from tests.cli.listing import Commands
from tests.cli.test_check import SPEC, having, job, pipeline
from tests.runs import keep, record

GIB = 2**30


@pytest.fixture
def with_history(jobmeter: Commands) -> Commands:
    """Forty runs of `train` of 4 GiB, give or take; one of `once`; nine runs of a workflow, the newest of all."""
    runs = [
        record(
            f"train{number:03d}", "train", wall_seconds=600.0 + number % 7,
            memory_peak_bytes=4 * GIB + number % 5 * GIB // 20, cpu_peak_percent=199.0,
            cpu_mean_percent=80.0, cpu_seconds=480.0,
            requirement={"cpus": 4, "memory_bytes": 16 * GIB, "runtime_seconds": 7200},
        )
        for number in range(40)
    ]  # fmt: skip
    keep(str(jobmeter.folder), *runs, record("once1", "once", wall_seconds=5.0, memory_peak_bytes=GIB))
    return having(jobmeter, *(run for number in range(1, 10) for run in pipeline(number)))


def sized(jobmeter: Commands, *arguments: str) -> list[dict[str, Any]]:
    done = jobmeter("size", "--format", "json", *arguments)
    assert (0, "") == (done.code, done.err)
    jobs: list[dict[str, Any]] = json.loads(done.out)["jobs"]
    return jobs


def test_a_job_is_sized_by_all_its_runs(with_history: Commands) -> None:
    (train,) = sized(with_history, "train")
    assert ("train", 40, 40) == (train["job_name"], train["runs"], train["completed"])
    assert 4.2 * GIB < train["memory_bytes"]["ask"] < 5 * GIB
    assert 606 < train["runtime_seconds"]["ask"] <= 780
    assert (2, 4) == (train["cpus"]["ask"], train["cpus"]["today"])
    assert train["expected_failures"] <= 0.01
    assert pytest.approx(12 / 6, rel=0.05) == train["wasted_gb_hours"]
    assert pytest.approx((4 * 603 - 480) / 3600, rel=0.01) == train["wasted_core_hours"]


def test_a_glob_sizes_each_job_that_it_matches(with_history: Commands) -> None:
    assert ["once", "preprocess", "train", "train_model"] == [job["job_name"] for job in sized(with_history, "*")]


def test_a_name_with_brackets_is_a_name_too(jobmeter: Commands) -> None:
    keep(str(jobmeter.folder), record("aaaa", "fit[1]", wall_seconds=5.0))
    assert ["fit[1]"] == [job["job_name"] for job in sized(jobmeter, "fit[1]")]


def test_a_workflow_is_sized_by_step_and_without_names_it_is_that_of_the_newest_run(with_history: Commands) -> None:
    by_name = sized(with_history, "ML Training Pipeline")
    assert [("preprocess", 9), ("train_model", 9)] == [(job["job_name"], job["runs"]) for job in by_name]
    assert by_name == sized(with_history)


def test_the_table_is_followed_by_the_reasons(with_history: Commands) -> None:
    table, reasons = with_history("size", "train").out.split("\n\n")
    headings = [part.strip() for part in table.splitlines()[0].split("  ") if part.strip()]
    assert ["job_name", "resource_type", "requested", "advised", "most_used"] == headings
    assert ["train", "Memory", "16", "GiB"] == table.splitlines()[1].split()[:4]
    lines = reasons.splitlines()
    assert lines[0].startswith("train: 40 runs, 40 completed; expected failure rate: ")
    assert "; what it requests today wastes 1.99 GiB-h and 0.537 core-h a run" in lines[0]
    assert lines[1].startswith("  Memory:  40 runs needed up to 4.2 GiB; by ")


def test_gpu_memory_is_advised_and_changes_no_request(jobmeter: Commands) -> None:
    keep(
        str(jobmeter.folder),
        *(
            record(f"train{n}", "train", wall_seconds=9.0, memory_peak_bytes=GIB, gpu_memory_peak_bytes=6 * GIB,
                   gpus_peak=1)
            for n in range(9)
        ),
    )  # fmt: skip
    (job,) = sized(jobmeter, "train")
    assert 6 * GIB <= job["gpu_memory_bytes"]["ask"] <= 7 * GIB
    printed = jobmeter("size", "train").out
    assert "  GPU memory: 9 runs needed up to 6 GiB" in printed
    assert {"memory", "num_cpus", "runtime", "num_gpus"} >= {
        line.split(":")[0].strip() for line in jobmeter("size", "train", "--format", "yaml").out.splitlines()[3:]
    }


def test_of_one_run_what_would_fail_is_unknown(with_history: Commands) -> None:
    assert "once: 1 run, 1 completed; expected failure rate: unknown" in with_history("size", "once").out


@pytest.mark.parametrize("target", ["0.5", "0.999", "99%"])
def test_a_target_can_be_chosen(with_history: Commands, target: str) -> None:
    assert 4 * GIB < sized(with_history, "train", "--target", target)[0]["memory_bytes"]["ask"] < 6 * GIB


@pytest.mark.parametrize("form", ["yaml", "slurm", "docker", "compose", "k8s", "ray"])
def test_formats_are_printed_and_nothing_else(with_history: Commands, form: str) -> None:
    done = with_history("size", "train", "--format", form)
    assert (0, "", True) == (done.code, done.err, "# train\n" in done.out)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--target", "0"], "--target: '0' is not a share between 0 and 1"),
        (["--target", "1.5"], "--target: '1.5' is not a share between 0 and 1"),
        (["--target", "abc"], "--target: 'abc' is not a share between 0 and 1"),
        (["--target", "nan"], "--target: 'nan' is not a share between 0 and 1"),
        (["--format", "pbs"], "--format: 'pbs' is not one of table, yaml"),
        (["nobody"], "no job and no workflow named 'nobody' has run"),
        (["--diff"], "Name the spec with --apply SPEC."),
        (["--apply", "/nowhere.yaml"], "/nowhere.yaml"),
    ],
)
def test_what_cannot_be_sized_is_one_clear_line(with_history: Commands, arguments: list[str], expected: str) -> None:
    done = with_history("size", *arguments)
    assert (2, "", 1) == (done.code, done.out, done.err.count("\n"))
    assert expected in done.err


def test_an_empty_store_says_so(jobmeter: Commands) -> None:
    assert (2, "", "jobmeter: there are no runs yet. `jobmeter run -- COMMAND` stores one.\n") == jobmeter("size")


def test_apply_writes_all_advice_up_and_down(with_history: Commands, tmp_path: Path) -> None:
    spec = tmp_path / "spec.yaml"
    spec.write_text(SPEC)
    shown = with_history("size", "--apply", str(spec), "--diff")
    assert (0, SPEC) == (shown.code, spec.read_text())
    assert shown.out.startswith("--- ")
    done = with_history("size", "--apply", str(spec))
    assert (0, "", True) == (done.code, done.out, "preprocess: memory 8 GiB → 1." in done.err)
    small, large = (job.requirement for job in load_plan(str(spec)).jobs)
    assert 1.2 * GIB < (small.memory_bytes or 0) < 2 * GIB
    assert 10.5 * GIB < (large.memory_bytes or 0) < 13 * GIB
    assert "# generous" in spec.read_text()


def test_nothing_is_advised_for_a_job_that_never_completed(jobmeter: Commands, tmp_path: Path) -> None:
    amounts = {"memory_bytes": 8 * GIB, "runtime_seconds": 600}
    having(
        jobmeter,
        *(job(14, "preprocess", "failed", run=number, wall_seconds=0.1, memory_peak_bytes=2**20, requirement=amounts)
          for number in (1, 2)),
        job(15, "train_model", "oom", run=2, wall_seconds=3.0, memory_peak_bytes=8 * GIB, requirement=amounts),
    )  # fmt: skip
    printed = jobmeter("size").out
    assert "preprocess: none of its 2 runs has completed, so what it needs is not known" in printed
    assert "train_model: its only run has not completed, so the advice is only a guess" in printed
    assert ["Memory"] == [line.split()[1] for line in printed.split("\n\n")[0].splitlines()[1:]]
    alone = jobmeter("size", "preprocess")
    assert (2, "", True) == (alone.code, alone.out, "none of its 2 runs has completed" in alone.err)
    spec = tmp_path / "spec.yaml"
    spec.write_text(SPEC)
    done = jobmeter("size", "--apply", str(spec))
    assert (0, True) == (done.code, "its request is not changed" in done.err)
    small, large = (each.requirement for each in load_plan(str(spec)).jobs)
    assert (8 * GIB, 600, None) == (small.memory_bytes, small.runtime_seconds, small.cpus)
    assert ((large.memory_bytes or 0) >= 16 * GIB, 8, 7200) == (True, large.cpus, large.runtime_seconds)


def test_a_job_of_which_no_run_has_ended_is_reported(jobmeter: Commands) -> None:
    journal = JournalWriter(str(jobmeter.folder), "a")
    start = read_stat(THIS_MACHINE, os.getpid()).start
    host = {"name": os.uname().nodename}
    journal.begin(
        {"id": "a", "name": "train", "started": "2026-01-31T12:00:00.000Z", "host": host, "measurements": {},
         "writer": {"pid": os.getpid(), "start": start}}
    )  # fmt: skip
    journal.close()
    done = jobmeter("size", "train")
    assert (2, True) == (done.code, "train: no run of it has ended yet" in done.err)


def test_jobs_come_in_the_order_of_the_spec_and_not_of_their_starts(jobmeter: Commands) -> None:
    having(jobmeter, job(9, "last", wall_seconds=1.0), job(2, "first", wall_seconds=1.0))
    assert ["first", "last"] == [one["job_name"] for one in sized(jobmeter, "ml-training-pipeline")]


def test_a_sweep_is_sized_by_its_largest_job(jobmeter: Commands) -> None:
    sizes = {1: 50, 2: 100, 3: 180}
    having(
        jobmeter,
        *(job(number, f"sw_{size}", run=run, step="sw_{n}", wall_seconds=4.0, memory_peak_bytes=size * 2**20)
          for run in range(1, 7) for number, size in sizes.items()),
    )  # fmt: skip
    (sweep,) = sized(jobmeter, "ml-training-pipeline")
    assert ("sw_{n}", 18) == (sweep["job_name"], sweep["runs"])
    assert 180 < sweep["memory_bytes"]["ask"] / 2**20 <= 224
    assert "of its largest job, sw_180 " in sweep["memory_bytes"]["reason"]


def test_a_tiny_waste_is_not_reported(jobmeter: Commands) -> None:
    keep(
        str(jobmeter.folder),
        record("a", "tiny", wall_seconds=0.1, memory_peak_bytes=2**20, requirement={"memory_bytes": 2**24}),
    )
    assert "wastes" not in jobmeter("size", "tiny").out


def test_apply_refuses_a_spec_of_other_jobs(with_history: Commands, tmp_path: Path) -> None:
    spec = tmp_path / "spec.yaml"
    spec.write_text(SPEC)
    done = with_history("size", "once", "--apply", str(spec))
    assert (2, True) == (done.code, "has no job 'once'" in done.err)


@pytest.fixture
def followed(jobmeter: Commands) -> Commands:
    """Twenty runs of `solve`, of which each needs 100 MiB and 10 MiB for each unit of its mesh."""
    keep(
        str(jobmeter.folder),
        *(
            record(
                f"solve{mesh:03d}", "solve", wall_seconds=60.0, memory_peak_bytes=(100 + 10 * mesh) * 2**20,
                requirement={"memory_bytes": 4 * GIB}, labels={"mesh": str(mesh), "bytes": str(1000 * mesh)},
            )
            for mesh in range(1, 21)
        ),
    )  # fmt: skip
    return jobmeter


@pytest.mark.parametrize("mesh", [2, 15, 40])
def test_a_feature_sizes_a_run_by_what_is_known_of_it(followed: Commands, mesh: int) -> None:
    (job,) = sized(followed, "solve", "--feature", f"mesh={mesh}")
    assert 1 <= job["memory_bytes"]["ask"] / ((100 + 10 * mesh) * 2**20) < 1.3
    assert "of mesh" in job["memory_bytes"]["reason"]


def test_inputs_are_sized_by_their_bytes(followed: Commands, tmp_path: Path) -> None:
    for name, size in (("one", 3000), ("two", 7000)):
        (tmp_path / name).write_bytes(b"x" * size)
    (job,) = sized(followed, "solve", "--input", str(tmp_path / "one"), str(tmp_path / "two"))
    assert 1 <= job["memory_bytes"]["ask"] / (200 * 2**20) < 1.3


def test_failures_that_cost_more_are_fewer(followed: Commands) -> None:
    cheap, dear = (sized(followed, "solve", "--failure-cost", cost)[0] for cost in ("0", "1000"))
    assert cheap["memory_bytes"]["ask"] <= dear["memory_bytes"]["ask"]


def test_the_reason_says_how_it_would_have_done_and_what_it_costs(followed: Commands) -> None:
    printed = followed("size", "solve", "--feature", "mesh=5").out
    assert "of the last 20 runs none would have failed, mean waste" in printed
    assert "Cost:" in printed
    assert "GiB-h a run, today 0.0667" in printed


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--feature", "mesh"], "--feature: 'mesh' is not NAME=NUMBER"),
        (["--feature", "mesh=fine"], "--feature: 'mesh=fine' is not NAME=NUMBER"),
        (["--feature", "mesh=inf"], "--feature: 'mesh=inf' is not NAME=NUMBER"),
        (["--feature", "bytes=-3"], "--feature: 'bytes=-3' is below 0"),
        (["--input", "/nowhere"], "--input: /nowhere: No such file or directory"),
        (["--failure-cost", "-1"], "--failure-cost: '-1' is not a number of runs, 0 or more"),
        (["--plot", "x.html"], "--plot: has no effect without --evaluate"),
        (["--evaluate", "--format", "slurm"], "--evaluate prints table or json, not slurm"),
        (["--evaluate", "--feature", "mesh=3"], "--feature: has no effect with --evaluate"),
        (["--evaluate", "--input", "/etc/passwd"], "--input: has no effect with --evaluate"),
        (["--evaluate", "--all"], "--all: has no effect with --evaluate"),
        (["--evaluate", "--apply", "spec.yaml"], "--apply: has no effect with --evaluate"),
        (["--evaluate", "--since", "then"], "--since: 'then'"),
    ],
)
def test_bad_input_is_one_clear_line(followed: Commands, arguments: list[str], expected: str) -> None:
    done = followed("size", "solve", *arguments)
    assert (2, "", 1) == (done.code, done.out, done.err.count("\n"))
    assert expected in done.err


def test_a_feature_that_no_run_has_is_reported(followed: Commands) -> None:
    done = followed("size", "solve", "--feature", "colour=3")
    assert (0, True) == (
        done.code,
        "no run has the feature 'colour', so it does not count. Known: bytes, mesh" in done.err,
    )


def test_of_many_jobs_those_that_save_most_come_first_and_those_that_are_fine_are_hidden(jobmeter: Commands) -> None:
    requests = {"fine": 1.2, "small": 4, "large": 64, "middle": 16, "tiny": 2}
    keep(
        str(jobmeter.folder),
        *(
            record(
                f"{name}{number}", name, wall_seconds=600.0, memory_peak_bytes=GIB,
                requirement={"memory_bytes": int(size * GIB)},
            )
            for name, size in requests.items() for number in range(6)
        ),
    )  # fmt: skip
    keep(
        str(jobmeter.folder),
        *(record(f"exact{n}", "exact", wall_seconds=9.0, requirement={"runtime_seconds": 11}) for n in range(9)),
    )
    table, total, *_ = jobmeter("size", "*").out.split("\n\n")
    order = [line.split()[0] for line in table.splitlines()[1:] if "Memory" in line]
    assert ["large", "middle", "small", "tiny"] == [name for name in order if name != "fine"]
    assert total.startswith("6 jobs: the stored runs would have held")
    assert "exact" not in table
    assert "exact" in jobmeter("size", "*", "--all").out


def test_a_trace_can_be_evaluated_before_anything_is_stored(jobmeter: Commands, tmp_path: Path) -> None:
    trace = tmp_path / "trace.csv"
    rows = [
        f"{number},align,align ({number}),COMPLETED,0,2,3600000,8000000000,1,{1000000 * number},60000,"
        f"{500000000 + 1000000 * number},{3000000 * number}"
        for number in range(1, 60)
    ]
    header = "task_id,process,name,status,exit,cpus,time,memory,attempt,start,realtime,peak_rss,rchar"
    trace.write_text("\n".join([header, *rows]) + "\n", encoding="utf-8")
    page = tmp_path / "page.html"
    done = jobmeter("size", "--evaluate", str(trace), "--json", "--plot", str(page))
    assert (0, "") == (done.code, done.err)
    report = json.loads(done.out)
    methods = report["methods"]
    assert (59, 1) == (report["runs"], report["jobs"])
    assert methods["advice"]["gb_hours_wasted"] < 0.1 * methods["today's requests"]["gb_hours_wasted"]
    assert methods["largest so far"]["failed"] > 50  # each needs more than those before it
    assert methods["advice"]["failed"] <= 2
    assert "<svg" in page.read_text(encoding="utf-8")
    printed = jobmeter("size", "--evaluate", str(trace)).out
    assert "the advice wastes" in printed
    assert "no runs yet" in jobmeter("size").err


def test_after_an_import_size_and_check_cover_what_was_imported(jobmeter: Commands, tmp_path: Path) -> None:
    keep(str(jobmeter.folder), record("mine", "mine", wall_seconds=5.0, memory_peak_bytes=GIB))
    trace = tmp_path / "trace.csv"
    header = "task_id,process,name,status,exit,cpus,memory,attempt,start,realtime,peak_rss,rchar"
    rows = [
        f"{number},p{number % 3},p{number % 3} ({number}),COMPLETED,0,1,4294967296,1,1,20000,1073741824,5"
        for number in range(9)
    ]
    failed = "9,p0,p0 (9),FAILED,137,1,4294967296,1,1,20000,1073741824,5"
    trace.write_text("\n".join([header, *rows, failed]) + "\n", encoding="utf-8")
    assert 0 == jobmeter("import", str(trace)).code
    assert ["p0", "p1", "p2"] == [job["job_name"] for job in sized(jobmeter)]
    checked = json.loads(jobmeter("check", "--json", "--exit-zero").out)
    assert (10, 1) == (checked["total_results"], checked["over_utilization_count"])
