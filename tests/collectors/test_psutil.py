from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from jobmeter.collectors.contract import Moment, Target
from jobmeter.collectors.psutil import PsutilCollector
from jobmeter.errors import NoData
from jobmeter.kernel.machine import THIS_MACHINE
from tests.collectors.metering import BURN, BURN_FOR, MIB, children, meter_python


def test_without_the_library_there_is_no_data_and_it_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psutil", None)
    with pytest.raises(NoData, match="pip install psutil"):
        PsutilCollector().check(THIS_MACHINE)


def test_a_process_that_is_not_there_is_no_data() -> None:
    with pytest.raises(NoData, match="4194305"):
        PsutilCollector().open(Target(root=4194305, main=4194305, root_is_job=True), frozenset())


def test_cpu_of_a_job_is_known_to_five_percent() -> None:
    done = meter_python(BURN + "burn(1)", ["psutil_*"])
    assert done.total("psutil_cpu_seconds") == pytest.approx(1.0, rel=0.05)


def test_cpu_of_a_child_that_exits_is_kept() -> None:
    done = meter_python(children("burn(1); time.sleep(0.5)", 1) + "import time; time.sleep(0.5)", ["psutil_*"], 0.2)
    # The child, and two Pythons that start.
    assert 0.95 <= done.total("psutil_cpu_seconds") <= 1.3


def test_cpu_of_short_children_in_turn_is_all_counted_and_reads_as_busy(tmp_path: Path) -> None:
    program = (
        "import resource, subprocess, sys, time\n"
        "body = 'import time\\nwhile time.process_time() < 0.1: pass'\n"
        "began = time.monotonic()\n"
        "for _ in range(15): subprocess.run([sys.executable, '-I', '-S', '-c', body])\n"
        "both = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))\n"
        "used = sum(u.ru_utime + u.ru_stime for u in both)\n"
        f"open('{tmp_path}/truth', 'w').write(f'{{used}} {{time.monotonic() - began}}')\n"
    )
    done = meter_python(program, ["psutil_*"])
    used, wall = map(float, (tmp_path / "truth").read_text().split())
    assert done.total("psutil_cpu_seconds") == pytest.approx(used, rel=0.05, abs=0.05)
    assert done.peak("psutil_cpu_percent") >= 0.8 * 100 * used / wall


def test_memory_of_a_tree_is_summed() -> None:
    done = meter_python(children(f"held = b'x' * {100 * MIB}; time.sleep(1)", 2), ["psutil_*"], 0.2)
    assert 200 * MIB <= done.peak("psutil_rss_total") <= 300 * MIB


def test_memory_that_is_shared_counts_once_in_pss() -> None:
    program = (
        f"import os, time; held = b'x' * {100 * MIB}\n"
        "if os.fork() and os.fork(): time.sleep(1); os.wait(); os.wait()\n"
        "else: time.sleep(1)\n"
    )
    done = meter_python(program, ["psutil_*"], 0.2)
    assert done.peak("psutil_rss_total") >= 300 * MIB
    assert 100 * MIB <= done.peak("psutil_pss_total") <= 150 * MIB


def test_a_process_that_slept_and_then_burns_reads_as_busy(tmp_path: Path) -> None:
    done = meter_python(BURN_FOR + f"time.sleep(2); burn_for(2, '{tmp_path}/rate')", ["psutil_*"], 0.5)
    rate = float((tmp_path / "rate").read_text())
    assert rate - 10 <= done.peak("psutil_cpu_percent") <= 110
    asleep = [sample.values.get("psutil_cpu_percent", 0.0) for sample in done.samples if 1 < sample.seconds < 2]
    assert all(float(percent) < 30 for percent in asleep)  # type: ignore[arg-type]


def test_the_processes_of_the_job_are_listed_with_what_they_used() -> None:
    done = meter_python(children("burn(0.5); time.sleep(0.3)", 2), ["psutil_*"], 0.1)
    costliest = done.record["processes"][0]
    assert costliest["cpu_seconds"] == pytest.approx(0.5, abs=0.1)
    assert costliest["rss_peak_bytes"] > MIB
    assert len(done.record["processes"]) == 3


def test_something_already_running_is_counted_from_when_the_meter_came() -> None:
    program = BURN + "burn(0.5); print(flush=True); time.sleep(60)"
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) as running:
        assert running.stdout is not None
        running.stdout.readline()
        target = Target(root=running.pid, main=running.pid, root_is_job=True)
        source = PsutilCollector().open(target, frozenset())
        readings = source.read(Moment(time.monotonic()))
        running.kill()
    assert float(readings["psutil_cpu_seconds"]) <= 0.1  # type: ignore[arg-type]
    assert len(list(readings["psutil_rss_total"])) == 1  # type: ignore[arg-type]


def test_what_is_kept_is_bounded_by_the_processes_that_live() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as running:
        target = Target(root=running.pid, main=running.pid, root_is_job=True)
        source = PsutilCollector().open(target, frozenset())
        assert len(source.live()) == 1
        running.communicate(b"\n")
    source.read(Moment(time.monotonic()))
    assert source.live() == []
    assert len(source.processes()) == 1
