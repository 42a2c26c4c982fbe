from __future__ import annotations

import os
from pathlib import Path

from jobmeter.collectors.contract import Moment, Target
from jobmeter.collectors.perf import PerfCollector
from jobmeter.kernel.machine import Machine
from tests.kernel.test_perf import needs_perf
from tests.sysfs import process_line, write_files

ENDED = 2**22 + 1
"""More than any pid: a process that ended after it was listed."""


@needs_perf
def test_a_process_that_ends_while_a_running_job_is_opened_leaves_the_others_counted(tmp_path: Path) -> None:
    me = os.getpid()
    write_files(tmp_path, {f"{me}/stat": process_line(me, 1), f"{ENDED}/stat": process_line(ENDED, me)})
    write_files(tmp_path, {"loadavg": f"0 0 0 1/2 {ENDED}", "stat": "cpu  1 0 0 1 0 0 0 0 0 0"})
    (tmp_path / f"{me}/task/{me}").mkdir(parents=True)
    target = Target(me, me, root_is_job=True, machine=Machine(proc=str(tmp_path)))
    source = PerfCollector().open(target, PerfCollector.default)
    seconds = source.read(Moment(0.0))["perf_cpu_seconds"]
    source.close()
    assert isinstance(seconds, float)
    assert seconds > 0
