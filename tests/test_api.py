"""The Python API, as a program of its own uses it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import jobmeter
from jobmeter.errors import CommandNotFound, UsageError
from jobmeter.kernel.machine import THIS_MACHINE
from jobmeter.kernel.procfs import read_cgroup
from jobmeter.meter.watch import Sample
from jobmeter.session.command import JobOptions, LaunchedCommand
from jobmeter.session.session import Session
from tests.waiting import LONG, wait_for

MIB = 1 << 20


def test_a_run_has_status_exit_code_and_figures() -> None:
    run = jobmeter.run(["sh", "-c", "exit 3"], keep=False)
    assert ("failed", 3) == (run.status, run.exit_code)
    assert run.cpu_seconds is not None
    assert run.cpu_seconds > 0
    assert run.record["schema"] == "jobmeter.run/1"


def test_the_size_of_the_calling_program_does_not_show() -> None:
    code = (
        "import json, jobmeter\n"
        "block = b'x' * (400 << 20)\n"
        "run = jobmeter.run(['true'], keep=False)\n"
        "print(json.dumps(run.record['measurements']['rusage_maxrss']['peak']), run.memory_peak_bytes)\n"
    )
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    for size in printed:
        assert 500 * 1024 < float(size) < 3 * MIB


def test_directory_environment_labels_and_name_reach_the_run(tmp_path: Path) -> None:
    run = jobmeter.run(
        ["sh", "-c", 'echo "$WORD" > here'], cwd=tmp_path, env={"WORD": "given", "PATH": os.environ["PATH"]},
        name="writer", labels={"team": "a"}, keep=False,
    )  # fmt: skip
    assert (tmp_path / "here").read_text() == "given\n"
    assert ("writer", {"team": "a"}, str(tmp_path)) == (run.record["name"], run.record["labels"], run.record["cwd"])


def test_a_directory_that_is_not_there_is_an_error_and_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="nowhere: there is no such directory"):
        jobmeter.run(["true"], cwd=tmp_path / "nowhere", store=str(tmp_path))
    assert os.listdir(tmp_path) == []


def test_bad_options_are_refused_before_anything_starts() -> None:
    with pytest.raises(UsageError, match="interval"):
        jobmeter.run(["true"], interval=-1, keep=False)
    with pytest.raises(UsageError, match="orphans"):
        jobmeter.run(["true"], orphans="eat", keep=False)
    with pytest.raises(CommandNotFound):
        jobmeter.run(["no-such-command"], keep=False)


def sampling_threads() -> int:
    return [thread.name for thread in threading.enumerate()].count("jobmeter")


def test_the_sampling_thread_ends_when_there_is_no_job() -> None:
    jobmeter.run(["true"], keep=False)
    wait_for(lambda: sampling_threads() == 0, "the end of the sampling thread")
    assert jobmeter.run(["true"], keep=False).exit_code == 0


def test_many_jobs_at_once_share_one_sampling_thread_and_keep_their_own_figures() -> None:
    loads = [0.1, 0.2, 0.3, 0.4]
    burn = "import sys, time\nend = float(sys.argv[1])\nwhile time.process_time() < end: pass"
    before = sampling_threads()
    jobs = [jobmeter.start([sys.executable, "-S", "-c", burn, str(load)], keep=False) for load in loads]
    assert sampling_threads() <= before + 1
    runs = [job.wait() for job in jobs]
    for load, run in zip(loads, runs):
        assert run.cpu_seconds == pytest.approx(load, abs=0.06)


def open_descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


@pytest.mark.parametrize("command", [[], ["tr\0ue"], ["/no/such/program"], ["/tmp"]])
def test_a_job_that_cannot_be_started_leaves_no_process_group_or_descriptor(command: list[str]) -> None:
    jobmeter.run(["true"], keep=False)
    before = open_descriptors()
    with pytest.raises(jobmeter.JobmeterError):
        jobmeter.run(command, keep=False)
    with pytest.raises(TypeError):
        jobmeter.run(["true"], env={"NUMBER": 1}, keep=False)
    assert before == open_descriptors()
    for controller in ("memory", "pids"):
        group = read_cgroup(THIS_MACHINE, "self").get(controller, "")
        left = Path(f"/sys/fs/cgroup/{controller}{group}").glob(f"jobmeter-{os.getpid()}-*")
        assert list(left) == []


def test_a_job_that_ignores_sigterm_is_killed_when_it_is_cancelled() -> None:
    job = jobmeter.start(["sh", "-c", "trap '' TERM; while :; do sleep 0.2; done"], keep=False)
    time.sleep(0.3)
    threading.Timer(0.2, job.cancel).start()
    run = job.wait()
    assert ("cancelled", 9) == (run.status, run.record["outcome"]["signal"])


def test_waiting_again_gives_the_same_run_and_cancelling_after_the_end_does_nothing() -> None:
    job = jobmeter.start(["true"], keep=False)
    run = job.wait()
    job.cancel()
    assert run is job.wait()


def test_a_listener_that_fails_costs_neither_the_job_nor_its_record() -> None:
    def fail(sample: Sample) -> None:
        raise RuntimeError("no")

    session = Session(LaunchedCommand(JobOptions(["sh", "-c", "sleep 0.1; exit 3"])), on_sample=fail)
    session.start()
    assert session.wait()["outcome"]["exit_code"] == 3


def test_a_forked_child_samples_its_own_jobs() -> None:
    code = (
        "import jobmeter, os, sys\n"
        "jobmeter.run(['true'], keep=False)\n"
        "if os.fork() == 0:\n"
        "    run = jobmeter.run(['sleep', '1'], keep=False, interval=0.05)\n"
        "    print(run.record['provenance']['samples'], flush=True)\n"
        "    os._exit(0)\n"
        "os.wait()\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=LONG)
    assert int(done.stdout) >= 4


def test_a_job_can_be_cancelled_with_all_it_started() -> None:
    job = jobmeter.start(["sh", "-c", "sleep 60 & sleep 60"], keep=False)
    time.sleep(0.2)
    job.cancel()
    run = job.wait()
    assert run.status == "cancelled"
    assert "left_running" not in run.record["provenance"]


def test_an_exception_while_waiting_ends_the_job() -> None:
    code = (
        "import jobmeter, os, signal, threading\n"
        "threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()\n"
        "try:\n"
        "    jobmeter.run(['sh', '-c', 'trap \"\" INT; sleep 60'], keep=False)\n"
        "except KeyboardInterrupt:\n"
        "    print('interrupted')\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=LONG)
    assert done.stdout == "interrupted\n"


def test_a_process_that_already_runs_can_be_measured() -> None:
    burn = "import time\ntime.sleep(0.5)\nend = time.process_time() + 0.5\nwhile time.process_time() < end: pass"
    process = subprocess.Popen([sys.executable, "-S", "-c", burn])
    reaper = threading.Thread(target=process.wait)
    reaper.start()
    run = jobmeter.attach(process.pid, keep=False, interval=0.1).wait()
    reaper.join()
    assert run.status == "completed"
    assert run.cpu_seconds == pytest.approx(0.5, abs=0.15)


def test_runs_are_kept_in_the_store_by_default(tmp_path: Path) -> None:
    run = jobmeter.run(["true"], store=str(tmp_path))
    lines = (tmp_path / "journal" / f"{run.id}.jsonl").read_text().splitlines()
    assert json.loads(lines[-1])["record"] == run.record


def test_the_public_names_are_all_there() -> None:
    for name in jobmeter.__all__:
        assert getattr(jobmeter, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        jobmeter.nothing  # noqa: B018
