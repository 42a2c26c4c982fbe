"""What measuring costs the job of an ordinary user: perf stops where it would cost much, and CPU time stays right.

The jobs are busy until perf has stopped, which they see by jobmeter's descriptors, so that how fast the machine is
does not matter. Each says what it used.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from jobmeter.errors import NoData
from jobmeter.kernel.cgroup import files
from jobmeter.kernel.cgroup.group import own_directories
from jobmeter.kernel.machine import THIS_MACHINE
from tests.parts import missing
from tests.running import (
    NOBODY,
    Metered,
    command_line,
    environment,
    interpreter,
    jobmeter,
    meter,
    meter_load,
    workplace,
)
from tests.waiting import wait_for

BUSY = """
import json, os, resource, subprocess, sys, time
with open(f"/proc/{os.getppid()}/stat") as file:
    meter = file.read().rpartition(")")[2].split()[1]  # the parent of our parent

def is_counted():
    links = []
    for name in os.listdir(f"/proc/{meter}/fd"):
        try: links.append(os.readlink(f"/proc/{meter}/fd/{name}"))
        except OSError: pass
    return "anon_inode:[perf_event]" in links

def own_cpu():
    return sum(time for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN) for time in resource.getrusage(who)[:2])

def fork():
    subprocess.run(["sh", "-c", "i=0; while [ $i -lt 500 ]; do (:); i=$((i+1)); done"], check=True)

def switch():
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    there, back = os.pipe(), os.pipe()
    if os.fork() == 0:
        os.close(there[1])
        while os.read(there[0], 1): os.write(back[1], b"x")
        os._exit(0)
    os.close(there[0])
    for _ in range(20000):
        os.write(there[1], b"x")
        os.read(back[0], 1)
    os.close(there[1])
    os.wait()

rounds = 0
while rounds < ROUNDS and (rounds < 4 or is_counted()):
    WORK()
    rounds += 1
with open("@/truth", "a") as file:
    file.write(json.dumps({"cpu": own_cpu(), "counted": is_counted()}) + "\\n")
"""
WITHOUT_PERF = ("--measurements=-perf_*",)
LOADS = pytest.mark.parametrize("load", ["fork", "switch"])
Enter = Callable[[], None]


@pytest.fixture
def enter() -> Iterator[Enter]:
    """For `preexec_fn`: go into a cgroup that is made for this test, and counts CPU time."""
    if os.getuid() != 0:
        missing("needs root, for a cgroup that jobmeter is alone in")
    try:
        v1, v2 = own_directories(THIS_MACHINE)
    except NoData as reason:
        missing(str(reason))
    parent = v1.get("cpuacct", v2)
    if parent is None:
        missing("no cgroup hierarchy that counts CPU time")
    path = tempfile.mkdtemp(prefix="test-", dir=parent)
    os.chmod(path, 0o755)
    yield lambda: files.move(os.getpid(), path)
    files.dissolve(path, parent)


def busy(load: str, *, rounds: int = 100, options: tuple[str, ...] = (), **more: Any) -> Metered:
    program = BUSY.replace("WORK", load).replace("ROUNDS", str(rounds))
    done = meter(interpreter(), "-I", "-S", "-c", program, options=options, user=NOBODY, **more)
    assert done.exit_code == 0, done.stderr
    return done


def perf(done: Metered) -> dict[str, object]:
    provenance: dict[str, object] = done.record["provenance"]["collectors"]["perf"]
    return provenance


def skip_without_perf(done: Metered) -> None:
    if not perf(done)["available"]:
        missing(f"perf events for ordinary users: {perf(done)['why']}")


def skip_if_slow(done: Metered) -> None:
    if done.truth[0]["counted"]:
        pytest.skip("this machine is too busy for the load to be worth stopping perf")


@LOADS
def test_perf_stops_where_it_would_slow_the_job_down_and_the_record_says_why(load: str) -> None:
    done = busy(load)
    skip_without_perf(done)
    skip_if_slow(done)
    why = str(perf(done)["failed"])
    assert why.startswith("stopped after ")
    numbers = re.search(
        r"down \(up to ([\d,]+) new processes and threads and ([\d,]+) context switches a second\)$", why
    )
    assert numbers is not None, why
    tasks, switches = (int(number.replace(",", "")) for number in numbers.groups())
    assert tasks > 1000 if load == "fork" else switches > 10_000, why
    assert done.value("cpu_seconds") == pytest.approx(done.true("cpu"), rel=0.05, abs=0.02)
    assert done.record["usage"]["cpu_seconds"]["from"] == "rusage_cpu_seconds"


@LOADS
def test_cpu_time_is_exact_without_perf_where_nothing_else_runs_beside_the_job(load: str, enter: Enter) -> None:
    done = busy(load, preexec_fn=enter)
    skip_without_perf(done)
    skip_if_slow(done)
    assert done.value("cpu_seconds") == pytest.approx(done.true("cpu"), rel=0.05, abs=0.02)
    assert done.record["usage"]["cpu_seconds"] | {"value": 0} == {
        "value": 0,
        "from": "rusage_cpu_seconds",
        "quality": "exact",
    }
    assert done.quality("cpu_mean_percent") == "exact"


@pytest.mark.parametrize("name", ["perf_cpu_seconds", "perf_*"])
def test_perf_does_not_stop_if_it_was_requested_by_name(name: str) -> None:
    if name == "perf_cpu_seconds" and not perf(meter("true", user=NOBODY))["available"]:
        missing("perf events for ordinary users")
    done = busy("switch", rounds=8, options=("--measurements", f"default,{name}"))
    skip_without_perf(done)
    assert done.truth[0]["counted"]
    assert "failed" not in perf(done)
    assert done.value("cpu_seconds") == pytest.approx(done.true("cpu"), rel=0.05, abs=0.02)
    # Either perf or rusage can have more, and then it is "at least": perf's clock runs on while a hypervisor has the
    # CPU, and rusage counts each switch to the job a moment longer. Where they agree, it is exact.
    totals = {key: summary.get("total", 0.0) for key, summary in done.record["measurements"].items()}
    counted, waited_for = totals["perf_cpu_seconds"], totals["rusage_cpu_seconds"]
    agree = counted < 1.03 * waited_for and waited_for < 1.03 * counted
    assert done.quality("cpu_seconds") == "exact" or not agree, totals


def test_children_nobody_waits_for_stay_with_perf() -> None:
    done = meter_load("unwaited", user=NOBODY)
    skip_without_perf(done)
    assert "failed" not in perf(done)
    assert done.record["usage"]["cpu_seconds"]["from"] == "perf_cpu_seconds"
    assert done.is_exact_cpu()


def test_perf_goes_on_in_a_job_that_computes_beside_one_that_forks() -> None:
    """The whole machine forks, the job does not."""
    forks = "while :; do (:); done"
    with subprocess.Popen(["sh", "-c", forks]) as neighbour:
        try:
            done = meter(
                interpreter(), "-I", "-S", "-c", "import time\nwhile time.process_time() < 1: pass", user=NOBODY
            )
        finally:
            neighbour.kill()
    skip_without_perf(done)
    assert "failed" not in perf(done)


BURN = "import time\nwhile time.process_time() < 0.5: pass"


def test_a_job_without_perf_that_is_alone_in_its_cgroup_has_exact_cpu_time(enter: Enter) -> None:
    """As on systems that give ordinary users no perf events."""
    for command in (
        ["true"],
        [interpreter(), "-I", "-S", "-c", BURN],
        ["sh", "-c", "for i in 1 2 3; do sleep 0; done"],
    ):
        done = meter(*command, options=WITHOUT_PERF, user=NOBODY, preexec_fn=enter)
        bound = done.record["measurements"]["cgroup_outer_cpu_seconds"]["total"]
        assert bound >= done.value("cpu_seconds") * 0.98
        assert done.quality("cpu_seconds") == "exact", (command, done.record["measurements"])


def test_a_busy_neighbour_in_the_cgroup_makes_it_at_least(enter: Enter) -> None:
    with subprocess.Popen(["sh", "-c", "while :; do :; done"], preexec_fn=enter) as neighbour:
        try:
            done = meter(interpreter(), "-I", "-S", "-c", BURN, options=WITHOUT_PERF, user=NOBODY, preexec_fn=enter)
        finally:
            neighbour.kill()
    assert done.quality("cpu_seconds") == "at least"
    assert done.value("cpu_seconds") == pytest.approx(0.5, rel=0.1)
    assert done.record["measurements"]["cgroup_outer_cpu_seconds"]["total"] > done.value("cpu_seconds")


def test_children_nobody_waits_for_make_it_at_least_without_perf(enter: Enter) -> None:
    done = meter_load("unwaited", options=WITHOUT_PERF, user=NOBODY, preexec_fn=enter)
    assert done.quality("cpu_seconds") == "at least"
    assert done.record["measurements"]["cgroup_outer_cpu_seconds"]["total"] >= 0.97 * done.true("cpu")


def run_and_move(program: str, enter: Enter) -> dict[str, Any]:
    """Run a job and move the process whose pid it writes to `@/pid` out of the cgroup; `@/go` then lets it go on.

    It goes on once samples were taken after the move.
    """
    folder = workplace()
    os.mkfifo(f"{folder}/go")
    os.chmod(f"{folder}/go", 0o666)
    words = command_line(
        ["run", "--quiet", "--interval", "0.05", "--window", "0.1", *WITHOUT_PERF, "--store", f"{folder}/store",
         "--report", f"{folder}/r.json", "--", interpreter(), "-I", "-S", "-c", program.replace("@", folder)],
        NOBODY,
    )  # fmt: skip
    with subprocess.Popen(words, env={**environment(), "HOME": folder}, cwd=folder, preexec_fn=enter) as job:
        wait_for(lambda: os.path.exists(f"{folder}/pid"), "the process to say its pid")
        pid = int(Path(f"{folder}/pid").read_text())
        v1, v2 = own_directories(THIS_MACHINE)
        files.move(pid, str(v1.get("cpuacct", v2)))
        (journal,) = Path(f"{folder}/store/journal").iterdir()
        lines = len(journal.read_bytes().splitlines())
        wait_for(lambda: len(journal.read_bytes().splitlines()) > lines + 2, "windows after the move")
        Path(f"{folder}/go").write_text("go")
        job.wait()
    record: dict[str, Any] = json.loads(Path(f"{folder}/r.json").read_text())
    return record


SAY_PID_AND_WAIT = """
with open("@/pid.new", "w") as file: file.write(str(os.getpid()))
os.rename("@/pid.new", "@/pid")
open("@/go").read()
"""


def test_a_process_that_is_moved_out_of_the_cgroup_makes_it_at_least(enter: Enter) -> None:
    record = run_and_move(f"import os{SAY_PID_AND_WAIT}{BURN}", enter)
    assert record["usage"]["cpu_seconds"]["quality"] == "at least"
    assert record["usage"]["cpu_seconds"]["value"] >= 0.5
    assert record["measurements"]["cgroup_outer_cpu_seconds"]["total"] < 0.4


UNSEEN = f"""
import os, signal, time
signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits: no rusage
end, kept = os.pipe()
if os.fork() == 0:
    {SAY_PID_AND_WAIT.strip().replace(chr(10), chr(10) + "    ")}
    for _ in range(60):  # each too short for a sample, outside of the cgroup
        if os.fork() == 0:
            while time.process_time() < 0.008: pass
            os._exit(0)
        try: os.wait()
        except ChildProcessError: pass
    os._exit(0)
os.close(kept)
os.read(end, 1)
"""


def test_a_process_that_was_seen_outside_the_cgroup_makes_it_at_least_whatever_the_figures_say(enter: Enter) -> None:
    """No source counts what it starts there: rusage and the cgroup agree, and both lack half a second."""
    record = run_and_move(UNSEEN, enter)
    measured = {key: summary.get("total", 0.0) for key, summary in record["measurements"].items()}
    assert measured["rusage_cpu_seconds"] < 0.25
    assert measured["cgroup_outer_cpu_seconds"] < 0.25
    assert record["usage"]["cpu_seconds"]["quality"] == "at least"


def test_a_job_with_a_cgroup_of_its_own_has_no_bound() -> None:
    done = meter("true")
    if "cgroup_cpu_seconds" not in done.record["measurements"]:
        missing("a cgroup of the job's own")
    assert "cgroup_outer_cpu_seconds" not in done.record["measurements"]
    assert "cgroup_outer_cpu_seconds" not in done.record["provenance"]["selected"]


def test_why_an_ordinary_user_gets_no_cgroup_is_said_as_before() -> None:
    done = meter("true", user=NOBODY)
    cgroup = done.record["provenance"]["collectors"]["cgroup"]
    if cgroup["available"]:
        missing("a place where an ordinary user gets no cgroup")
    refused = jobmeter("run", "--measurements", "default,cgroup_mem_peak", "--", "true", user=NOBODY)
    assert refused.stderr == f"jobmeter: --measurements: cgroup_mem_peak cannot be measured here: {cgroup['why']}\n"
