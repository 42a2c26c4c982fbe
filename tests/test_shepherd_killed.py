"""A job's shepherd is killed (`pkill -9 jobmeter-job`, the OOM killer): the job is seen to its end all the same."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import jobmeter
from jobmeter.analyse.findings import findings
from jobmeter.kernel.pidfd import PidFd
from jobmeter.model import Outcome
from jobmeter.session.command import JobOptions, LaunchedCommand
from jobmeter.session.session import Session
from tests.running import NOBODY, command_line, environment, interpreter, is_exact_cpu, readable_copy, workplace
from tests.waiting import LONG, wait_for
from tests.workflow.live import lives

BUSY = """
import os, sys
sys.path.insert(0, sys.argv[1])
import loads
loads._directory = sys.argv[2]
for _ in range(4):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:  # an orphan, with its own session, as soon as its parent ends
            loads.burn(0.5)
        loads.report(cpu=loads.own_cpu(), pid=os.getpid())
        os._exit(0)
    os.wait()
    loads.burn(0.4)
held = b"x" * (100 << 20)
loads.report(cpu=loads.own_cpu(), pid=os.getpid(), memory=loads.own_peak())
sys.exit(7)
"""


def parent_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()[1])


def children_of(pid: int) -> list[int]:
    children = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            if parent_of(int(name)) == pid:
                children.append(int(name))
    return children


class Started:
    """`jobmeter run` of a job that writes its pids to the file `pids`, line by line."""

    def __init__(self, command: Sequence[str], *options: str, user: int | None = None, kind: str = "compiled") -> None:
        self.folder = workplace()
        words = ["run", "--report", f"{self.folder}/r.json", "--store", f"{self.folder}/store", *options, "--"]
        settings = {**environment(), "HOME": self.folder, **({"JOBMETER_SHEPHERD": kind} if kind == "python" else {})}
        with open(f"{self.folder}/said", "w", encoding="utf-8") as said:  # no pipe: what is left may hold it for long
            self.process = subprocess.Popen(
                command_line([*words, *command], user), cwd=self.folder, stderr=said, env=settings
            )

    def lines(self, name: str, count: int) -> list[str]:
        path = Path(self.folder, name)
        wait_for(lambda: path.exists() and path.read_text().count("\n") >= count, f"{count} lines of {name}")
        return path.read_text().splitlines()

    def pids(self, count: int) -> list[int]:
        return [int(line) for line in self.lines("pids", count)]

    def shepherd(self) -> int:
        wait_for(lambda: bool(children_of(self.process.pid)) or self.process.poll() is not None, "the shepherd")
        return children_of(self.process.pid)[0]

    def kill_shepherd(self) -> None:
        os.kill(self.shepherd(), signal.SIGKILL)

    def end(self) -> tuple[int, dict[str, Any], str]:
        """Its exit code, its record, and what it said."""
        self.process.wait(LONG)
        path, said = Path(self.folder, "r.json"), Path(self.folder, "said").read_text()
        return self.process.returncode, json.loads(path.read_text()) if path.exists() else {}, said


def groups_of(pid: int) -> list[str]:
    """The cgroups of jobs of the jobmeter with this pid."""
    groups = [path for path, _, _ in os.walk("/sys/fs/cgroup")]
    return [path for path in groups if os.path.basename(path).startswith(f"jobmeter-{pid}-")]


def stolen_seconds() -> float:
    """CPU time of this machine, all CPUs together, that its hypervisor did not give it."""
    return int(Path("/proc/stat").read_text().split()[8]) / 100


MOMENTS = [(0, "compiled", seed) for seed in range(5)] + [(NOBODY, "compiled", seed) for seed in range(5, 10)]


@pytest.mark.parametrize(("user", "kind", "seed"), [*MOMENTS, (0, "python", 10), (NOBODY, "python", 11)])
def test_killed_at_any_moment_the_job_is_measured_to_its_end(user: int, kind: str, seed: int) -> None:
    moment = random.Random(seed).uniform(0.0, 2.0)
    stolen_before = stolen_seconds()
    folder = workplace()
    busy = [interpreter(), "-c", BUSY, f"{readable_copy()}/benchmarks", folder]
    job = Started(busy, "--orphans", "wait", user=user, kind=kind)
    shepherd = job.shepherd()
    time.sleep(moment)
    with contextlib.suppress(ProcessLookupError):  # the job was faster
        os.kill(shepherd, signal.SIGKILL)
    code, record, said = job.end()
    truth_path = Path(folder, "truth")
    if code == 125 and not truth_path.exists():
        assert "could not start" in said  # killed before it had forked
        return
    truth = [json.loads(line) for line in truth_path.read_text().splitlines()]
    assert 9 == len(truth), f"jobmeter ended before the job: {said}"
    assert not any(lives(line["pid"]) for line in truth)
    assert 7 == code, said
    assert {"status": "failed", "exit_code": 7, "signal": None} == record["outcome"]
    memory = max(line.get("memory", 0) for line in truth)
    true = {"cpu_seconds": sum(line["cpu"] for line in truth), "memory_peak_bytes": memory}
    # perf's clock goes on while the hypervisor lends the CPU to others.
    blur = {"cpu_seconds": 0.05 + stolen_seconds() - stolen_before}
    for name, figure in record["usage"].items():
        if name in true and figure["quality"] == "exact":
            assert 0.95 * true[name] <= figure["value"] <= 1.05 * true[name] + blur.get(name, 0.0), name
    assert record["usage"]["cpu_seconds"]["value"] > 0.9 * true["cpu_seconds"]
    if record["provenance"].get("shepherd_killed"):
        assert "jobmeter-job) was killed" in said
        assert "at least" == record["usage"]["processes_peak"]["quality"]


WITH_ORPHAN = "(setsid sh -c 'echo $$ >>pids; exec sleep 300' & ) ; echo $$ >>pids; exec sleep 300"


@pytest.mark.parametrize("user", [0, NOBODY])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_to_jobmeter_ends_the_job_with_its_orphans(user: int, number: int) -> None:
    job = Started(["sh", "-c", WITH_ORPHAN], user=user)
    pids = job.pids(2)
    job.kill_shepherd()
    os.kill(job.process.pid, number)
    code, record, _ = job.end()
    assert (128 + number, "cancelled") == (code, record["outcome"]["status"])
    assert not any(map(lives, pids))
    assert record["provenance"]["shepherd_killed"]


@pytest.mark.parametrize("user", [0, NOBODY])
def test_a_runtime_limit_ends_the_job_with_its_orphans(user: int) -> None:
    job = Started(["sh", "-c", WITH_ORPHAN], "--enforce", "--runtime", "3", user=user)
    pids = job.pids(2)
    job.kill_shepherd()
    _, record, _ = job.end()
    assert "timeout" == record["outcome"]["status"]
    assert not any(map(lives, pids))


@pytest.mark.parametrize("user", [0, NOBODY])
def test_a_memory_limit_ends_the_job(user: int) -> None:
    grow = "import os, sys, time\nsys.stdin.readline()\nx = b'x' * (300 << 20)\ntime.sleep(300)"
    script = f'echo $$ >>pids; mkfifo go; {interpreter()} -c "$0" <go; exit $?'
    job = Started(["sh", "-c", script, grow], "--enforce", "--memory", "100m", user=user)
    (pid,) = job.pids(1)
    job.kill_shepherd()
    with open(f"{job.folder}/go", "w", encoding="ascii") as go:
        go.write("\n")
    _, record, _ = job.end()
    assert "oom" == record["outcome"]["status"]
    assert not lives(pid)


@pytest.mark.parametrize(("orphans", "left"), [("leave", 1), ("end", 0)])
@pytest.mark.parametrize("user", [0, NOBODY])
def test_what_the_job_leaves_running_is_treated_as_requested(user: int, orphans: str, left: int) -> None:
    script = (
        "(setsid sh -c 'echo $$ >>pids; exec sleep 300' & ) ; echo $$ >>pids; while [ ! -e end ]; do sleep 0.01; done"
    )
    job = Started(["sh", "-c", script], "--orphans", orphans, user=user)
    pids = job.pids(2)
    job.kill_shepherd()
    Path(job.folder, "end").touch()
    code, record, _ = job.end()
    alive = [pid for pid in pids if lives(pid)]
    for pid in alive:
        os.kill(pid, signal.SIGKILL)
    assert (0, left, left) == (code, len(alive), record["provenance"].get("left_running", 0))
    assert record["usage"]["cpu_seconds"]["quality"] == "at least" if left else is_exact_cpu(record)


def test_killed_while_orphans_are_waited_for_they_are_still_waited_for() -> None:
    script = "(sh -c 'echo $$ >>pids; while [ ! -e end ]; do sleep 0.01; done' & ) ; exit 5"
    job = Started(["sh", "-c", script], "--orphans", "wait")
    (pid,) = job.pids(1)
    wait_for(lambda: children_of(job.shepherd()) == [pid], "the orphan alone to be left below the shepherd")
    job.kill_shepherd()
    time.sleep(0.2)  # it does not end
    assert job.process.poll() is None
    Path(job.folder, "end").touch()
    code, record, _ = job.end()
    assert (5, True) == (code, record["provenance"]["shepherd_killed"])


def test_killed_together_with_its_job_the_record_says_that_the_job_was_killed() -> None:
    job = Started(["sh", "-c", "echo $$ >pids; exec sleep 300"])
    (pid,) = job.pids(1)
    os.kill(job.shepherd(), signal.SIGKILL)
    os.kill(pid, signal.SIGKILL)
    code, record, _ = job.end()
    assert (137, "killed") == (code, record["outcome"]["status"])


def test_one_that_is_stopped_and_goes_on_changes_nothing() -> None:
    job = Started(["sh", "-c", "echo $$ >pids; sleep 0.3; exit 6"])
    (pid,) = job.pids(1)
    shepherd = job.shepherd()
    os.kill(shepherd, signal.SIGSTOP)
    wait_for(lambda: not lives(pid), "the job to end")
    os.kill(shepherd, signal.SIGCONT)
    code, record, _ = job.end()
    assert (6, None) == (code, record["provenance"].get("shepherd_killed"))


def test_no_cgroup_is_left_behind() -> None:
    job = Started(["sh", "-c", "echo $$ >pids; sleep 0.3"])
    job.pids(1)
    job.kill_shepherd()
    job.end()
    assert [] == groups_of(job.process.pid)


def test_show_says_it() -> None:
    job = Started(["sh", "-c", "echo $$ >pids; sleep 0.3"])
    job.pids(1)
    job.kill_shepherd()
    record: Any = job.end()[1]
    (finding,) = [finding for finding in findings(record) if finding.kind == "shepherd"]
    assert "The job's own parent process (jobmeter-job) was killed" in finding.text
    assert "problem" == finding.severity


def test_children_that_jobmeter_had_before_are_not_taken_for_the_jobs() -> None:
    """A shell may have started some before it became jobmeter."""
    folder = workplace()
    words = command_line(["run", "--quiet", "--orphans", "end", "--", "sh", "-c", "echo $$ >pids; exec sleep 0.5"])
    shell = ["sh", "-c", 'sleep 300 & echo $! >before; exec "$@"', "sh", *words]
    process = subprocess.Popen(shell, cwd=folder, env={**environment(), "HOME": folder})
    wait_for(Path(folder, "pids").exists, "the job")
    before = int(Path(folder, "before").read_text())
    for child in children_of(process.pid):
        if child != before:
            os.kill(child, signal.SIGKILL)
    assert 0 == process.wait(LONG)
    assert lives(before)
    os.kill(before, signal.SIGKILL)


def kill_shepherd_of(pid: int) -> None:
    os.kill(parent_of(pid), signal.SIGKILL)


class TestInTheApi:
    """The calling program stays as it is: it adopts nobody, so less is known."""

    def start(self, folder: Path, script: str, **options: Any) -> tuple[Any, list[int]]:
        job = jobmeter.start(["sh", "-c", script], cwd=folder, keep=False, **options)
        wait_for(lambda: (folder / "ready").exists(), "the job")
        return job, [int(line) for line in (folder / "pids").read_text().splitlines()]

    def test_the_job_is_waited_for(self, tmp_path: Path) -> None:
        job, (pid,) = self.start(
            tmp_path, "echo $$ >pids; touch ready; while [ ! -e end ]; do sleep 0.01; done; exit 3"
        )
        kill_shepherd_of(pid)
        (tmp_path / "end").touch()
        run = job.wait()
        assert not lives(pid)
        # Its new parent gets the exit code, and since Linux 6.15 we do too.
        assert (run.status, run.exit_code) in (("failed", 3), ("lost", None))
        assert run.record["provenance"]["shepherd_killed"]
        assert "exact" != run.record["measurements"].get("perf_cpu_seconds", {}).get("quality")

    def test_cancel_ends_it_with_its_children(self, tmp_path: Path) -> None:
        job, pids = self.start(tmp_path, "sleep 300 & echo $! >pids; echo $$ >>pids; touch ready; wait")
        kill_shepherd_of(pids[1])
        job.cancel()
        assert "cancelled" == job.wait().status
        assert not any(map(lives, pids))

    def test_an_exit_code_that_nobody_reports_is_unknown_and_no_success(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(PidFd, "wait_status", lambda held: None)  # a kernel before 6.15
        job, (pid,) = self.start(tmp_path, "echo $$ >pids; touch ready; while [ ! -e end ]; do sleep 0.01; done")
        kill_shepherd_of(pid)
        (tmp_path / "end").touch()
        run = job.wait()
        assert ("lost", None) == (run.status, run.exit_code)
        assert 125 == Outcome(**run.record["outcome"]).shell_code

    def test_killed_at_the_gate_the_job_runs_all_the_same(self, tmp_path: Path) -> None:
        job = LaunchedCommand(
            JobOptions(["sh", "-c", "echo did >it; exit 3"], directory=str(tmp_path)),
            before_exec=lambda launched: os.kill(launched.shepherd, signal.SIGKILL),
        )
        session = Session(job)
        session.start()
        record = session.wait()
        assert "did\n" == (tmp_path / "it").read_text()
        assert record["outcome"]["exit_code"] in (3, None)
        assert record["provenance"]["shepherd_killed"]

    def test_figures_of_an_ordinary_user_are_at_least(self) -> None:
        script = (
            "import os, jobmeter\n"
            "job = jobmeter.start(['sh', '-c', 'echo $PPID >shepherd; i=0; "
            "while [ $i -lt 500000 ]; do i=$((i+1)); done'], keep=False)\n"
            "while not os.path.exists('shepherd') or not open('shepherd').read(): pass\n"
            "os.kill(int(open('shepherd').read()), 9)\n"
            "print({name: figure['quality'] for name, figure in job.wait().record['usage'].items()})"
        )
        user = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"] if os.getuid() == 0 else []
        done = subprocess.run(
            [*user, interpreter(), "-c", script], cwd=workplace(), env=environment(), capture_output=True, text=True,
            check=False, timeout=LONG,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert "'cpu_seconds': 'at least'" in done.stdout
        assert "exact" not in done.stdout
