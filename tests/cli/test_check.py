"""`jobmeter check`: a store whose usage is known, and jobs that really use too much."""

from __future__ import annotations

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from jobmeter.store import Selection, open_store
from jobmeter.store.query.overuse import runs_to_check
from jobmeter.workflow.plan import load_plan
from tests.cli.listing import Commands
from tests.parts import missing
from tests.running import environment
from tests.running import jobmeter as really
from tests.runs import keep, record
from tests.store.kept import opened

GIB = 2**30
WORKFLOW = {"id": "ml-training-pipeline", "name": "ML Training Pipeline"}


def job(
    number: int, name: str, status: str = "completed", *, run: int = 1, attempt: int = 1, step: str = "", **figures: Any
) -> Any:
    """A run of one job of the workflow."""
    part = {"run_id": run, "job_id": number, "step": step or name, "attempt": attempt, "fingerprint": "f"}
    plain = record(f"r{run}j{number:02d}a{attempt}", name, status, **figures)
    started = f"2026-01-31T{12 + run:02d}:{number:02d}:0{attempt}.000Z"
    # As `run` writes it, before what was measured.
    return {"schema": plain["schema"], "workflow": {**WORKFLOW, **part}, **plain, "started": started}


def pipeline(run: int = 1) -> list[Any]:
    """The workflow of the docs: preparing requests much too much, training for too little of everything."""
    return [
        job(14, "preprocess", run=run, wall_seconds=600.0, memory_peak_bytes=1.2 * GIB,
            requirement={"memory_bytes": 8 * GIB}),
        job(15, "train_model", run=run, wall_seconds=9900.0, memory_peak_bytes=10.5 * GIB, cpu_peak_percent=950.5,
            cpu_mean_percent=700.0, requirement={"cpus": 8, "memory_bytes": 8 * GIB, "runtime_seconds": 7200}),
    ]  # fmt: skip


def having(jobmeter: Commands, *runs: Any) -> Commands:
    """Commands on a store with these runs too."""
    keep(str(jobmeter.folder), *runs)
    return jobmeter


def table(printed: str) -> list[str]:
    """The lines of the table, without the heading, with ` · ` between the cells."""
    lines = printed.split("\n\n")[1].splitlines()[1:]
    return [" · ".join(part.strip() for part in line.split("  ") if part.strip()) for line in lines]


def check_json(jobmeter: Commands, *arguments: str) -> dict[str, Any]:
    report: dict[str, Any] = json.loads(jobmeter("check", "--json", *arguments).out)
    return report


def test_the_example_comes_out_to_the_letter(jobmeter: Commands) -> None:
    done = having(jobmeter, *pipeline())("check", "ml-training-pipeline")
    heading = done.out.split("\n\n")[1].splitlines()[0].split("  ")
    assert ["job_id", "job_name", "resource_type", "specified", "peak_used", "over_utilization"] == [
        part.strip() for part in heading if part.strip()
    ]
    assert [
        "15 · train_model · Memory · 8 GiB · 10.5 GiB · +31.3 %",
        "15 · train_model · CPU · 800 % (8 cores) · 950 % · +18.8 %",
        "15 · train_model · Runtime · 2h 0m 0s · 2h 45m 0s · +37.5 %",
    ] == table(done.out)
    assert done.out.startswith("1 of 2 jobs used more than it requested\n")
    assert "preprocess: requested 8 GiB, used 1.2 GiB at most: 6.55 GiB less would free 1.09 GiB-h a run" in done.out
    assert (1, "") == (done.code, done.err)


def test_json_has_the_same_as_text_and_as_numbers(jobmeter: Commands) -> None:
    report = check_json(having(jobmeter, *pipeline()), "ML Training Pipeline")
    assert ("ml-training-pipeline", 1, 2, 3) == (
        report["workflow_id"], report["run_id"], report["total_results"], report["over_utilization_count"],
    )  # fmt: skip
    expected = {
        "job_id": 15, "job_name": "train_model", "resource_type": "Memory", "specified": "8 GiB",
        "peak_used": "10.5 GiB", "over_utilization": "+31.3 %", "specified_value": 8 * GIB,
        "peak_used_value": 10.5 * GIB, "over_utilization_percent": 31.25, "unit": "bytes",
    }  # fmt: skip
    assert expected == {key: report["violations"][0][key] for key in expected}
    assert ["preprocess"] == [one["job_name"] for one in report["opportunities"]]
    assert "results" not in report
    everything = check_json(jobmeter, "ML Training Pipeline", "--all")["results"]
    assert [False, True, True, True] == [one["violation"] for one in everything]


def test_all_shows_every_line_with_its_sign(jobmeter: Commands) -> None:
    lines = table(having(jobmeter, *pipeline())("check", "--all").out)
    assert "14 · preprocess · Memory · 8 GiB · 1.2 GiB · -85.0 %" == lines[0]
    assert 4 == len(lines)


def test_without_names_it_is_the_newest_run_with_its_workflow(jobmeter: Commands) -> None:
    having(jobmeter, *pipeline(1), *pipeline(2))
    assert ("ml-training-pipeline", 2, 2) == tuple(
        check_json(jobmeter)[key] for key in ("workflow_id", "run_id", "total_results")
    )
    lone = record("later", "lone", wall_seconds=5.0, requirement={"runtime_seconds": 4})
    lone["started"] = "2027-01-01T00:00:00.000Z"
    report = check_json(having(jobmeter, lone))
    assert (None, 1, ["later"]) == (
        report["workflow_id"], report["total_results"], [line["job_id"] for line in report["violations"]],
    )  # fmt: skip


def test_runs_of_a_workflow_are_kept_apart(jobmeter: Commands) -> None:
    good = job(15, "train_model", run=2, memory_peak_bytes=GIB, requirement={"memory_bytes": 8 * GIB})
    having(jobmeter, *pipeline(1), good)
    codes = [
        jobmeter("check", "ml-training-pipeline", *more).code for more in ([], ["--run-id", "1"], ["--run-id", "2"])
    ]
    assert [0, 1, 0] == codes
    done = jobmeter("check", "ml-training-pipeline", "--run-id", "7")
    assert (2, "jobmeter: --run-id: 'ml-training-pipeline' has no run 7. Stored runs: 1 to 2.\n") == (
        done.code,
        done.err,
    )


def test_who_stayed_within_is_one_line(jobmeter: Commands) -> None:
    run = record("aaaa", "train", wall_seconds=1.0, requirement={"runtime_seconds": 4})
    assert (0, "The job stayed within what it requested\n", "") == having(jobmeter, run)("check", "train")


def test_exit_zero_prints_the_same_and_exits_with_zero(jobmeter: Commands) -> None:
    having(jobmeter, *pipeline())
    failing, passing = jobmeter("check"), jobmeter("check", "--exit-zero")
    assert (1, 0, failing.out) == (failing.code, passing.code, passing.out)


def test_failed_jobs_are_reported_with_their_cause(jobmeter: Commands) -> None:
    requirement = {"memory_bytes": 8 * GIB, "runtime_seconds": 60}
    crash = job(4, "crash", "killed", wall_seconds=1.0, requirement=requirement)
    crash["outcome"].update(exit_code=None, signal=11)
    having(
        jobmeter,
        job(1, "hog", "oom", wall_seconds=9.0, memory_peak_bytes=8 * GIB - 5, requirement=requirement),
        job(
            1, "hog", attempt=2, wall_seconds=9.0, memory_peak_bytes=12.5 * GIB, requirement={"memory_bytes": 12 * GIB}
        ),
        job(2, "slow", "timeout", wall_seconds=60.2, memory_peak_bytes=GIB, requirement=requirement),
        crash,
    )
    done = jobmeter("check")
    assert [
        "1 · hog · Memory · 8 GiB · ≥ 8 GiB · out of memory",
        "1 · hog (attempt 2) · Memory · 8 GiB · 12.5 GiB · +56.3 %",
        "2 · slow · Runtime · 1m 0s · ≥ 1m 0s · timeout",
    ] == table(done.out)
    assert "1 job failed for another reason:\n  4  crash  killed by SIGSEGV\n" in done.out
    report = check_json(jobmeter)
    assert (3, ["killed by SIGSEGV"]) == (
        report["over_utilization_count"],
        [one["cause"] for one in report["failures"]],
    )
    assert ["out of memory", None, "timeout"] == [line.get("cause") for line in report["violations"]]


def test_filters_choose_among_all_runs(jobmeter: Commands) -> None:
    having(jobmeter, *pipeline(1), *pipeline(2))
    assert 4 == check_json(jobmeter, "--since", "2026-01-01")["total_results"]
    assert jobmeter("check", "--since", "2026-01-01").out.startswith("2 of 4 jobs used more than they requested\n")
    assert 2 == check_json(jobmeter, "--name", "train*")["total_results"]
    assert 1 == check_json(jobmeter, "--name", "train*", "ml-training-pipeline")["total_results"]


def test_of_very_many_runs_the_same_is_found_by_sql(jobmeter: Commands, monkeypatch: pytest.MonkeyPatch) -> None:
    having(jobmeter, *pipeline(1), *pipeline(2), job(3, "bad", "failed", run=2))
    plain = check_json(jobmeter, "--since", "2026-01-01")
    monkeypatch.setattr("jobmeter.store.query.overuse.MANY", 1)
    report = check_json(jobmeter, "--since", "2026-01-01")
    assert {**plain, "opportunities": []} == report
    store = opened(jobmeter.folder)
    few = runs_to_check(store, store.condition(Selection()))
    assert (5, 3, False) == (few.total, len(few.rows), few.is_all)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["nothing"], "there is no run 'nothing'"),
        (["train_model", "--run-id", "1"], "--run-id selects a run of a workflow"),
        (["--run-id", "0"], "--run-id: '0' is not a whole number above 0"),
        (["--run-id", "²"], "--run-id: '²' is not a whole number above 0"),
        (["--min-over", "much"], "--min-over: 'much' is not a percentage"),
        (["--diff"], "--diff shows what --fix would change. Name the spec with --fix SPEC."),
        (["--fix", "/nowhere/spec.yaml"], "/nowhere/spec.yaml"),
    ],
)
def test_what_cannot_be_checked_is_one_clear_line(jobmeter: Commands, arguments: list[str], expected: str) -> None:
    done = having(jobmeter, *pipeline())("check", *arguments)
    assert (2, "", 1) == (done.code, done.out, done.err.count("\n"))
    assert expected in done.err


def test_filters_that_no_run_fits_find_none(jobmeter: Commands) -> None:
    assert (0, "", "jobmeter: no runs found\n") == having(jobmeter, *pipeline())("check", "--name", "nobody")


def test_an_empty_store_says_so(jobmeter: Commands) -> None:
    assert (2, "", "jobmeter: there are no runs yet. `jobmeter run -- COMMAND` stores one.\n") == jobmeter("check")


SPEC = """\
name: ML Training Pipeline
jobs:
  - name: preprocess
    command: "true"
    resource_requirements: {memory: 8g, runtime: PT10M}  # generous
  - name: train_model
    command: "true"
    resource_requirements: big
resource_requirements:
  - {name: big, num_cpus: 8, memory: 8g, runtime: PT2H}
"""


def test_fix_raises_what_was_too_little_and_nothing_else(jobmeter: Commands, tmp_path: Path) -> None:
    spec = tmp_path / "spec.yaml"
    spec.write_text(SPEC)
    having(jobmeter, *pipeline())
    shown = jobmeter("check", "--fix", str(spec), "--diff")
    assert "\n-  - {name: big, num_cpus: 8, memory: 8g, runtime: PT2H}\n+  - {name: big, num_cpus: 9," in shown.out
    assert SPEC == spec.read_text()
    done = jobmeter("check", "--fix", str(spec))
    assert (1, True) == (done.code, f"jobmeter: {spec}: rewritten\n" in done.err)
    assert "train_model: cpus 8 → 9\n" in done.err
    assert SPEC.splitlines()[:9] == spec.read_text().splitlines()[:9]
    requirement = load_plan(str(spec)).jobs[1].requirement
    assert (True, True) == ((requirement.memory_bytes or 0) > 10.5 * GIB, (requirement.runtime_seconds or 0) > 9900)
    again = jobmeter("check", "--fix", str(spec))
    assert f"jobmeter: {spec}: nothing to change\n" in again.err


def test_fix_refuses_a_spec_without_the_job(jobmeter: Commands, tmp_path: Path) -> None:
    spec = tmp_path / "spec.yaml"
    spec.write_text("name: other\njobs:\n  - {name: a, command: 'true'}\n")
    done = having(jobmeter, *pipeline())("check", "ml-training-pipeline", "--fix", str(spec))
    assert (2, True) == (done.code, "not of 'ml-training-pipeline'. Name the spec" in done.err)


@pytest.mark.parametrize("names", [["s_1"], ["s_1", "s_2"]])
def test_fix_of_single_jobs_corrects_their_sweep(jobmeter: Commands, tmp_path: Path, names: list[str]) -> None:
    spec = tmp_path / "spec.yaml"
    sweep = '{name: "s_{i}", command: "true", parameters: {i: "1:2"}, resource_requirements: {memory: 1g}}'
    spec.write_text(f"name: {WORKFLOW['name']}\njobs:\n  - {sweep}\n")
    jobs = [
        job(number, f"s_{number}", step="s_{i}", memory_peak_bytes=2 * GIB, requirement={"memory_bytes": GIB})
        for number in (1, 2)
    ]
    done = having(jobmeter, *jobs)("check", *names, "--fix", str(spec))
    assert (1, True) == (done.code, "s_{i}: memory 1 GiB → " in done.err)
    assert (load_plan(str(spec)).jobs[0].requirement.memory_bytes or 0) > 2 * GIB


BUSY = "import time; end = time.process_time() + 1\nwhile time.process_time() < end: pass"


def test_a_single_busy_thread_on_one_cpu_is_never_flagged(jobmeter: Commands) -> None:
    """Twenty times, with both cores busy with something else, and with each other."""
    forever = "while True: pass"
    others = [subprocess.Popen([sys.executable, "-c", forever]) for _ in range(2)]
    try:
        run = ["run", "--quiet", "--store", str(jobmeter.folder), "--name", "busy", "--cpus", "1", "--"]
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(lambda _: really(*run, sys.executable, "-c", BUSY), range(20)))
    finally:
        for other in others:
            other.kill()
            other.wait()
    report = check_json(jobmeter, "--name", "busy", "--min-over", "0")
    assert (20, 0) == (report["total_results"], report["over_utilization_count"]), report["violations"]


HOG = """\
import sys, time
if sys.argv[1] == "cpu":
    # It goes on until it had far more than a fiftieth of a CPU, as it does on the busiest machine.
    began = time.monotonic()
    while (elapsed := time.monotonic() - began) < 1.5 or time.process_time() < 0.06 * elapsed:
        pass
elif sys.argv[1] == "memory":
    held = b"x" * (200 << 20)
    time.sleep(0.5)
else:
    time.sleep(2.5)
"""
HOGS = """\
name: Hogs
jobs:
  - {name: cpu, command: python3 hog.py cpu, resource_requirements: {cpus: 0.02, memory: 1g, runtime: PT2M}}  # kept
  - {name: memory, command: python3 hog.py memory, resource_requirements: {cpus: 1, memory: 100m, runtime: PT2M}}
  - {name: runtime, command: python3 hog.py runtime, resource_requirements: {cpus: 1, memory: 1g, runtime: PT2S}}
"""


def test_real_hogs_are_flagged_and_once_fixed_are_not(jobmeter: Commands, tmp_path: Path) -> None:
    (tmp_path / "hog.py").write_text(HOG)
    spec = tmp_path / "spec.yaml"
    spec.write_text(HOGS)
    run = [sys.executable, "-m", "jobmeter", "workflow", "run", "--store", str(jobmeter.folder), str(spec)]
    done = subprocess.run(run, env=environment(), check=False, capture_output=True, text=True)
    assert 0 == done.returncode, done.stderr
    report = check_json(jobmeter, "hogs")
    assert [("cpu", "CPU"), ("memory", "Memory"), ("runtime", "Runtime")] == [
        (line["job_name"], line["resource_type"]) for line in report["violations"]
    ]
    for run_id in range(2, 6):
        assert 1 == jobmeter("check", "--fix", str(spec)).code
        assert "  # kept" in spec.read_text()
        subprocess.run(run, env=environment(), check=False, capture_output=True)
        again = check_json(jobmeter, "hogs")
        assert run_id == again["run_id"]
        if [line["resource_type"] for line in again["violations"]] != ["CPU"]:
            break
        # A machine that others keep less busy than before gives the job more of a CPU than it got then.
    assert 0 == again["over_utilization_count"], again["violations"]


def test_who_used_more_cpus_than_requested_is_flagged_unless_the_kernel_kept_it_to_them(
    jobmeter: Commands, tmp_path: Path
) -> None:
    (tmp_path / "hog.py").write_text(HOG)
    place = ["--quiet", "--store", str(jobmeter.folder)]
    really("run", *place, "--name", "hog", "--cpus", "0.02", "--", sys.executable, f"{tmp_path}/hog.py", "cpu")
    assert ["CPU"] == [line["resource_type"] for line in check_json(jobmeter, "hog")["violations"]]
    assert "It used more CPU than it requested" in jobmeter("show", "hog").out

    # So little that it would get more on any machine, also on a busy one: only the limit keeps it down.
    burn = "import time\nwhile time.process_time() < 0.3: pass"
    really("run", *place, "--name", "held", "--cpus", "0.05", "--enforce", "--", sys.executable, "-c", burn)
    held = open_store(str(jobmeter.folder), print)
    run: Any = held.record(held.resolve("held"))
    if "enforced" not in run:
        missing("no cgroup here that limits CPU")
    assert run["measurements"]["cgroup_throttled_seconds"]["total"] > 0
    checked = jobmeter("check", "held")
    assert (0, True) == (checked.code, "used more" not in checked.out), checked.out
    assert "used more CPU" not in jobmeter("show", "held").out


def test_a_misspelt_name_is_answered_with_the_right_one(jobmeter: Commands) -> None:
    having(jobmeter, *pipeline())
    for wrong, right in (("ml-trainig-pipeline", "ml-training-pipeline"), ("train_modle", "train_model")):
        done = jobmeter("check", wrong)
        assert (2, "", f"jobmeter: there is no run and no workflow {wrong!r}. Did you mean {right!r}?\n") == (
            done.code,
            done.out,
            done.err,
        )
        assert f"has run. Did you mean {right!r}?" in jobmeter("size", wrong).err


def test_jobs_of_several_workflow_runs_are_distinguished(jobmeter: Commands) -> None:
    lone = record("alone", "lone", wall_seconds=5.0, requirement={"runtime_seconds": 4})
    having(jobmeter, *pipeline(1), *pipeline(2), lone)
    done = jobmeter("check", "--since", "2026-01-01")
    assert "workflow" == done.out.split("\n\n")[1].split()[0]
    lines = table(done.out)
    assert ["run 2", "run 2", "run 2", "run 1", "run 1", "run 1"] == [
        line.split(" · ")[0].removeprefix("ml-training-pipeline ") for line in lines[:6]
    ]
    assert "- · alone · lone · Runtime · 4 s · 5 s · +25.0 %" == lines[6]
    keys = ("run", "workflow_id", "run_id", "job_id")
    jobs = [tuple(one[key] for key in keys) for one in check_json(jobmeter, "--since", "2026-01-01")["violations"]]
    assert ("r2j15a1", "ml-training-pipeline", 2, 15) == jobs[0]
    assert ("alone", None, None, "alone") == jobs[-1]


def test_of_one_workflow_run_the_columns_stay_though_filters_chose_it(jobmeter: Commands) -> None:
    done = having(jobmeter, *pipeline())("check", "--since", "2026-01-01")
    assert "workflow" not in done.out


def test_attempts_are_counted_as_one_job_and_a_job_that_completed_at_last_did_not_fail(jobmeter: Commands) -> None:
    having(
        jobmeter,
        job(1, "a", "cancelled", wall_seconds=1.0, requirement={"runtime_seconds": 60}),
        job(1, "a", attempt=2, wall_seconds=1.0, requirement={"runtime_seconds": 60}),
        job(2, "b", wall_seconds=1.0, requirement={"runtime_seconds": 60}),
    )
    assert (0, "All 2 jobs stayed within what they requested\n", "") == jobmeter("check")
    report = check_json(jobmeter)
    assert (2, 0, []) == (report["total_results"], report["failures_count"], report["failures"])


def test_of_very_many_runs_attempts_are_one_job_too(jobmeter: Commands, monkeypatch: pytest.MonkeyPatch) -> None:
    requirement = {"memory_bytes": 8 * GIB}
    having(
        jobmeter,
        job(1, "a", "cancelled", wall_seconds=1.0, requirement=requirement),
        job(1, "a", attempt=2, wall_seconds=1.0, memory_peak_bytes=GIB, requirement=requirement),
        job(2, "b", "oom", wall_seconds=1.0, memory_peak_bytes=8 * GIB, requirement=requirement),
        job(2, "b", attempt=2, memory_peak_bytes=9 * GIB, requirement={"memory_bytes": 12 * GIB}),
        job(3, "c", "failed", wall_seconds=1.0, requirement=requirement),
    )
    plain = check_json(jobmeter)
    monkeypatch.setattr("jobmeter.store.query.overuse.MANY", 1)
    assert {**plain, "opportunities": []} == check_json(jobmeter)
    assert (3, 1, 2) == (plain["total_results"], plain["failures_count"], plain["over_utilization_count"])
    assert "None of 2 jobs used more than it requested\n" == jobmeter("check", "--status", "completed").out


def test_failures_are_listed_alone_where_nothing_else_is_reported(jobmeter: Commands) -> None:
    crash = job(4, "crash", "failed", wall_seconds=1.0, requirement={"runtime_seconds": 60})
    crash["outcome"].update(exit_code=3)
    done = having(jobmeter, crash, job(5, "other", "lost", wall_seconds=1.0))("check")
    assert "\n2 jobs failed:\n  4  crash  failed with exit code 3\n  5  other  lost" in done.out
    assert done.out.startswith("1 of 2 jobs stayed within what it requested; 1 requested nothing\n")


def test_a_peak_of_cpu_of_too_short_a_run_is_marked(jobmeter: Commands) -> None:
    having(jobmeter, job(1, "short", cpu_peak_percent=80.0, cpu_mean_percent=80.0, requirement={"cpus": 1}))
    assert ["1 · short · CPU · 100 % (1 core) · ≥ 80 % · -20.0 %"] == table(jobmeter("check", "--all").out)


def test_a_spec_of_another_workflow_is_refused_though_nothing_is_to_be_changed(
    jobmeter: Commands, tmp_path: Path
) -> None:
    spec = tmp_path / "spec.yaml"
    spec.write_text("name: other\njobs:\n  - {name: preprocess, command: 'true'}\n")
    fine = job(14, "preprocess", memory_peak_bytes=GIB, requirement={"memory_bytes": 8 * GIB})
    done = having(jobmeter, fine)("check", "ml-training-pipeline", "--fix", str(spec))
    assert (2, "", True) == (done.code, done.out, "not of 'ml-training-pipeline'. Name the spec" in done.err)
    lone = record("lone1", "lone", wall_seconds=1.0, requirement={"runtime_seconds": 4})
    done = having(jobmeter, lone)("check", "lone", "--fix", str(spec))
    assert (2, "", True) == (done.code, done.out, "has no job 'lone'" in done.err)


@pytest.mark.parametrize("spec_text", [SPEC, SPEC.rstrip("\n"), SPEC.replace("\n", "\r\n")])
def test_a_diff_stands_alone_and_can_be_applied(
    jobmeter: Commands, tmp_path: Path, spec_text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    spec = tmp_path / "spec.yaml"
    spec.write_bytes(spec_text.encode())
    shown = having(jobmeter, *pipeline())("check", "--fix", "spec.yaml", "--diff")
    assert shown.out.startswith("--- spec.yaml\n+++ spec.yaml\n@@ ")
    subprocess.run(["git", "apply", "-p0", "-"], input=shown.out.encode(), check=True, cwd=tmp_path)
    applied = spec.read_bytes()
    spec.write_bytes(spec_text.encode())
    jobmeter("check", "--fix", "spec.yaml")
    assert (True, spec.read_bytes()) == (applied != spec_text.encode(), applied)


def test_fix_raises_what_a_job_met_that_never_completed_and_nothing_else(jobmeter: Commands, tmp_path: Path) -> None:
    spec = tmp_path / "spec.yaml"
    spec.write_text(SPEC)
    requirement = {"cpus": 8, "memory_bytes": 8 * GIB, "runtime_seconds": 7200}
    crash = job(14, "preprocess", "failed", memory_peak_bytes=9 * GIB, wall_seconds=3.0, requirement=requirement)
    full = job(15, "train_model", "oom", memory_peak_bytes=8 * GIB, cpu_peak_percent=950.0, wall_seconds=3.0,
               requirement=requirement)  # fmt: skip
    done = having(jobmeter, crash, full)("check", "--fix", str(spec))
    assert (
        "preprocess: none of its runs has completed, so what it needs is unknown; its request is not changed"
        in done.err
    )
    small, large = (each.requirement for each in load_plan(str(spec)).jobs)
    assert (8 * GIB, 600) == (small.memory_bytes, small.runtime_seconds)
    assert (8, True, 7200) == (large.cpus, (large.memory_bytes or 0) >= 12 * GIB, large.runtime_seconds)


GROWS = """\
name: Grows
jobs:
  - name: hog
    command: python3 -c "import time; held = b'x' * (120 << 20); time.sleep(0.3)"
    resource_requirements: {memory: 40m, runtime: PT1M}
  - {name: slow, command: sleep 1.5, resource_requirements: {runtime: PT1S}}
"""


def test_after_fix_and_resume_the_same_run_is_clean(jobmeter: Commands, tmp_path: Path) -> None:
    spec = tmp_path / "spec.yaml"
    spec.write_text(GROWS)
    start = [sys.executable, "-m", "jobmeter", "workflow"]
    more = ["--store", str(jobmeter.folder), "--enforce"]
    subprocess.run([*start, "run", *more, str(spec)], env=environment(), check=False, capture_output=True)
    assert 1 == jobmeter("check", "--fix", str(spec)).code
    for _ in range(3):
        # A job that met a limit shows only that it needs more: that can take more than one correction.
        subprocess.run([*start, "resume", *more, "grows"], env=environment(), check=False, capture_output=True)
        if jobmeter("check", "grows", "--fix", str(spec)).code == 0:
            break
    report = check_json(jobmeter, "grows")
    assert (1, 2, 0, []) == (
        report["run_id"], report["total_results"], report["over_utilization_count"], report["failures"],
    ), report["violations"]  # fmt: skip
