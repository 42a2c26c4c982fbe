"""A key that is requested by name and cannot be measured: the job is not run, and the reason is said."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from jobmeter.cli.measurements import listing
from tests.parts import missing
from tests.running import NOBODY, environment, jobmeter, meter, workplace

UNAVAILABLE = [
    ("container_cpu_seconds", "the job is not a container"),
    *((row["key"], row["why"]) for row in listing() if row["source"] in ("perf", "cgroup") and not row["available"]),
]
"""Keys that this machine does not have for a command, each with the reason that `jobmeter measurements` gives."""


@pytest.mark.parametrize(("key", "why"), UNAVAILABLE, ids=[key for key, _ in UNAVAILABLE])
def test_the_job_does_not_start_and_nothing_is_left_of_it(key: str, why: str) -> None:
    folder = workplace()
    done = jobmeter("run", "--measurements", f"default,{key}", "--store", folder, "--", "touch", f"{folder}/ran")
    assert f"jobmeter: --measurements: {key} cannot be measured here: {why}\n" == done.stderr
    assert (2, []) == (done.returncode, os.listdir(folder))


def test_a_glob_or_all_leaves_it_out() -> None:
    for patterns in ("default,container_*", "default,perf_*", "all"):
        done = meter("true", options=["--measurements", patterns])
        assert (0, True) == (done.exit_code, "rusage_maxrss" in done.record["measurements"]), done.stderr
        assert "container_cpu_seconds" not in done.record["measurements"]


def test_it_may_be_excluded_again() -> None:
    assert 0 == meter("true", options=["--measurements", "default,container_pids,-container_*"]).exit_code


def test_what_cannot_be_measured_is_reported_also_when_only_the_launch_of_the_job_shows_it() -> None:
    """An ordinary user gets no cgroup here; a user who gets one has the key measured."""
    folder = workplace()
    options = ["--quiet", "--measurements", "cgroup_mem_peak", "--store", folder]
    done = jobmeter("run", *options, "--", "touch", f"{folder}/ran", user=NOBODY)
    if done.returncode == 0:
        assert os.path.exists(f"{folder}/ran")
        return
    assert "cgroup_mem_peak cannot be measured here: " in done.stderr
    assert (2, 1, []) == (done.returncode, done.stderr.count("\n"), os.listdir(folder))


def test_a_key_that_is_spared_by_default_is_measured_when_it_is_named() -> None:
    spared = {"proc_pss_total", "proc_hwm_max", "perf_cpu_percent"}
    before = meter("sleep", "0.6").record
    if "cgroup_mem_peak" not in before["measurements"]:
        missing("nothing is spared without a cgroup of the job's own")
    assert set() == spared & before["measurements"].keys()
    done = meter("sleep", "0.6", options=["--measurements", "default,proc_hwm_max,proc_pss_total"])
    assert {"proc_pss_total", "proc_hwm_max"} == spared & done.record["measurements"].keys()


def test_exclusions_stand_in_files_and_variables_too() -> None:
    folder = workplace()
    Path(folder, "jobmeter.toml").write_text('measurements = ["default", "-proc_processes"]\n')
    settings = {**environment(), "HOME": folder}
    words = ["run", "--quiet", "--store", folder, "--report", f"{folder}/r.json", "--", "true"]
    assert 0 == jobmeter(*words, cwd=folder, env=settings).returncode
    report = Path(folder, "r.json").read_text()
    assert ('"rusage_maxrss"' in report, '"proc_processes"' in report) == (True, False)
    settings["JOBMETER_MEASUREMENTS"] = "-rusage_maxrss"
    assert 0 == jobmeter(*words, cwd=folder, env=settings).returncode
    report = Path(folder, "r.json").read_text()
    assert ('"rusage_maxrss"' in report, '"proc_processes"' in report) == (False, True)


def test_an_exclusion_alone_needs_an_equals_sign_and_the_error_says_so() -> None:
    assert 0 == jobmeter("run", "--quiet", "--measurements=-proc_cmd", "--", "true").returncode
    done = jobmeter("run", "--measurements", "-proc_cmd", "--", "true")
    assert (2, True) == (done.returncode, "--measurements=-KEY" in done.stderr)


def test_attach_is_refused_before_it_measures() -> None:
    folder = workplace()
    job = subprocess.Popen(["sleep", "60"])
    try:
        done = jobmeter("attach", "--measurements", "rusage_maxrss", "--store", folder, str(job.pid))
        theirs = ["attach", "--measurements", "default,proc_pss_total", "--store", folder, str(job.pid)]
        refused = jobmeter(*theirs, user=NOBODY)
    finally:
        job.kill()
        job.wait()
    why = "the kernel reports it only to the parent of a process"
    assert (2, f"jobmeter: --measurements: rusage_maxrss cannot be measured here: {why}\n") == (
        done.returncode,
        done.stderr,
    )
    why = f"/proc/{job.pid}/smaps_rollup: Permission denied"
    assert (2, f"jobmeter: --measurements: proc_pss_total cannot be measured here: {why}\n") == (
        refused.returncode,
        refused.stderr,
    )
    assert [] == os.listdir(folder)


def test_python_raises_and_leaves_nothing_behind() -> None:
    program = """
import os, jobmeter
before = len(os.listdir("/proc/self/fd"))
for _ in range(3):
    try:
        jobmeter.run(["touch", "ran"], measurements=["default", "container_pids"], keep=False)
    except jobmeter.JobmeterError as error:
        print(error)
print(len(os.listdir("/proc/self/fd")) - before <= 2, os.path.exists("ran"))
print(jobmeter.run(["true"], measurements=["-proc_cmd"], keep=False).status)
"""
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment(), cwd=workplace(), capture_output=True, text=True, check=True
    )
    *errors, left, status = done.stdout.splitlines()
    assert ["--measurements: container_pids cannot be measured here: the job is not a container"] * 3 == errors
    assert ("True False", "completed") == (left, status)
