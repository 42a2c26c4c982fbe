"""jobmeter on a machine that is not Linux, as far as one can be had on Linux.

A Python that believes it is on macOS: no /proc and no /sys, none of the calls that
only Linux has, and a shepherd that can neither adopt orphans nor look at the dead.
psutil and `ps` themselves read the machine they are on.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.waiting import LONG

SOURCE = Path(__file__).parent.parent / "src"

NOT_LINUX = """
import os, platform, signal, sys, time
import psutil, subprocess  # they choose what to do by the platform, and must do it for the real one
sys.platform = "darwin"
platform.machine = lambda: "arm64"
for module, names in (
    (os, ["memfd_create", "MFD_CLOEXEC", "sched_getaffinity", "sched_setaffinity", "waitid", "pidfd_open", "P_PIDFD"]),
    (signal, ["sigwaitinfo", "sigtimedwait"]),
    (time, ["CLOCK_BOOTTIME"]),
):
    for name in names:
        if hasattr(module, name):
            delattr(module, name)
"""

RUN = """
import json, sys, threading
from jobmeter.kernel.machine import Machine
from jobmeter.launch import spawn
from jobmeter.session.measuring import MeasureOptions
from jobmeter.session.command import JobOptions, LaunchedCommand
from jobmeter.session.session import Session

spawn._HERE = os.path.dirname(os.path.abspath(sys.argv[1]))

def run(program, end_after=None, **job):
    session = Session(
        LaunchedCommand(JobOptions([sys.executable, "-c", program], **job)),
        MeasureOptions(interval=0.1, store=os.path.join(spawn._HERE, "store")),
        machine=Machine(proc="/nonexistent", sys="/nonexistent"),
    )
    session.start()
    if end_after is not None:
        threading.Timer(end_after, session.stop).start()
    print(json.dumps(session.wait()))
"""


def mac(tmp_path: Path, program: str, first: str = "") -> str:
    """The output of `program`, run by a Python that is not on Linux after `first`."""
    shepherd = f"sys.path.insert(0, {str(SOURCE)!r})\nfrom jobmeter.launch.shepherd import main\nmain(sys.argv[1:])\n"
    (tmp_path / "shepherd.py").write_text(NOT_LINUX.replace("import psutil, subprocess", "") + shepherd)
    done = subprocess.run(
        [sys.executable, "-c", first + NOT_LINUX + textwrap.dedent(program), str(tmp_path / "shepherd.py")],
        check=False,
        capture_output=True,
        text=True,
        timeout=LONG,
        env={**os.environ, "PYTHONPATH": str(SOURCE)},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def mac_run(tmp_path: Path, call: str) -> dict[str, Any]:
    record: dict[str, Any] = json.loads(mac(tmp_path, RUN + textwrap.dedent(call)))
    return record


def runs(pid: int) -> bool:
    """Whether a process can still run; whoever adopted it may not have noticed that it ended."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def test_every_module_can_be_imported(tmp_path: Path) -> None:
    program = """
        import importlib, pkgutil, jobmeter
        for module in pkgutil.walk_packages(jobmeter.__path__, "jobmeter."):
            if module.name != "jobmeter.__main__":
                importlib.import_module(module.name)
                print(module.name)
    """
    # These look for the platform they were built for.
    imported = mac(tmp_path, program, first="import matplotlib, sqlalchemy").split()
    assert {"jobmeter.kernel.perf", "jobmeter.collectors.psutil", "jobmeter.session.session"} <= set(imported)


def test_units_and_aggregation_work(tmp_path: Path) -> None:
    program = """
        from jobmeter import units
        from jobmeter.collectors.rusage import CPU
        from jobmeter.kernel.machine import cpu_count
        from jobmeter.meter.aggregate import combine, new_aggregate
        from jobmeter.model import Kind
        summary = new_aggregate(CPU._replace(kind=Kind.GAUGE))
        summary.add(5, 1.0)
        print(units.text(1 << 30, "bytes"), combine(CPU, [1.0, 2.0]), summary.summary("count"), cpu_count() > 0)
    """
    assert mac(tmp_path, program).endswith("3.0 {'peak': 5, 'mean': 5, 'min': 5, 'p95': 5} True\n")


def test_every_collector_says_whether_it_can_measure(tmp_path: Path) -> None:
    program = """
        import json
        from jobmeter.collectors import availability, load_all
        from jobmeter.kernel.machine import Machine
        nowhere = Machine(proc="/nonexistent", sys="/nonexistent")
        print(json.dumps({c.name: availability(c, nowhere) for c in load_all()}))
    """
    why_not = json.loads(mac(tmp_path, program))
    assert why_not["psutil"] is None
    assert why_not["ps"] is None
    assert why_not["rusage"] is None
    assert "/nonexistent" in why_not["proc"]
    assert why_not["cgroup"]


def test_a_job_is_measured_from_end_to_end(tmp_path: Path) -> None:
    program = "import time\nheld = b'x' * (50 << 20)\nwhile time.process_time() < 0.5: pass\ntime.sleep(0.3)\nexit(3)"
    record = mac_run(tmp_path, f"run({program!r})")
    assert record["outcome"] == {"status": "failed", "exit_code": 3, "signal": None}
    assert record["usage"]["cpu_seconds"]["value"] == pytest.approx(0.5, rel=0.2)
    assert record["usage"]["memory_peak_bytes"]["value"] >= 50 << 20
    assert record["measurements"]["psutil_cpu_seconds"]["total"] >= 0.4
    assert {name for name, state in record["provenance"]["collectors"].items() if state["available"]} == {
        "psutil",
        "rusage",
    }
    assert record["processes"][0]["cmd"].startswith(sys.executable)
    assert len(list((tmp_path / "store").rglob("*.jsonl"))) == 1


def test_a_job_that_exceeds_its_time_is_ended(tmp_path: Path) -> None:
    call = """
        from jobmeter.model import Requirement
        run("import time; time.sleep(60)", requirement=Requirement(runtime_seconds=0.5), enforce=True)
    """
    record = mac_run(tmp_path, call)
    assert record["outcome"]["status"] == "timeout"
    assert record["outcome"]["signal"] == signal.SIGTERM


def test_an_orphan_that_would_not_end_is_ended_with_its_job(tmp_path: Path) -> None:
    orphan = f"""
import os, signal, time
if os.fork():
    time.sleep(60)
signal.signal(signal.SIGTERM, signal.SIG_IGN)
open({str(tmp_path / "orphan")!r}, "w").write(str(os.getpid()))
time.sleep(60)
"""
    record = mac_run(tmp_path, f"from jobmeter.launch import supervisor; supervisor.GRACE = 0.5; run({orphan!r}, 1.0)")
    assert record["outcome"]["status"] == "cancelled"
    assert not runs(int((tmp_path / "orphan").read_text()))
