"""Which of the pids that a driver lists are the job's, also in a container."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from jobmeter.collectors.contract import Target
from jobmeter.collectors.job_processes import JobProcesses
from jobmeter.kernel.machine import Machine
from tests.sysfs import process_line, write_files


class SomeGroup:
    """As far as it is used here: the processes of a cgroup."""

    def __init__(self, pids: list[int]) -> None:
        self._pids = pids

    def processes(self) -> list[int]:
        return self._pids


def processes(folder: Path, group: Any = None) -> JobProcesses:
    """The shepherd is 10, the job 20 with its child 21; 30 is another's; 40 is in the job's group, not in its tree."""
    for pid, parent in {10: 1, 20: 10, 21: 20, 30: 1, 40: 1}.items():
        write_files(folder, {f"{pid}/stat": process_line(pid, parent)})
    write_files(folder, {"40/status": "Name:\tjob\nNSpid:\t40\t7"})
    (folder / "20/environ").write_bytes(b"A=b\0CUDA_VISIBLE_DEVICES=1\0broken\0")
    return JobProcesses(Target(10, 20, group=group, machine=Machine(proc=str(folder))))


def test_descendants_of_the_shepherd_are_the_jobs_and_it_is_not(tmp_path: Path) -> None:
    assert {20, 21} == processes(tmp_path).of([10, 20, 21, 30, 40, 99])


def test_processes_of_the_jobs_cgroup_are_the_jobs_also_by_the_pid_they_see_themselves(tmp_path: Path) -> None:
    assert {20, 21, 40, 7} == processes(tmp_path, SomeGroup([40])).of([10, 20, 21, 30, 40, 7, 99])


def test_the_environment_is_that_of_the_command(tmp_path: Path) -> None:
    job = processes(tmp_path)
    assert "1" == job.variable("NVIDIA_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES")
    assert job.variable("NOT_SET") is None
