from __future__ import annotations

import gc
import os
import random
import time
from pathlib import Path

import pytest

from jobmeter.engines.contract import LeftTask
from jobmeter.engines.devices import Devices
from jobmeter.engines.local import LocalEngine
from tests.engines.running import Running
from tests.workflow.live import Place, lives


def test_what_cannot_even_be_recorded_is_handed_to_whoever_waits(running: Running) -> None:
    # JSON has no word for it, so there can be no header and no record.
    running.start("sleep 60", requirement=object())
    assert isinstance(running.end(), Exception)


@pytest.mark.parametrize("seed", range(5))
def test_jobs_that_are_cancelled_while_they_start_all_end(running: Running, seed: int) -> None:
    pause = random.Random(seed).uniform(0.0, 0.15)
    for number in range(40):
        running.start("exec sleep 60", number)
    time.sleep(pause)
    running.engine.cancel()
    assert ["cancelled"] * 40 == [running.status() for _ in range(40)], f"cancelled after {pause} s"


def test_a_job_whose_shepherd_someone_killed_is_ended_with_the_others(running: Running, place: Place) -> None:
    for number in (1, 2, 3):
        running.start("echo $$ >>pids; exec sleep 60", number)
    pids = [int(line) for line in place.await_lines("pids", 3)]
    shepherd = int(Path(f"/proc/{pids[0]}/stat").read_text().rpartition(")")[2].split()[1])
    os.kill(shepherd, 9)
    running.engine.cancel()
    assert ["cancelled"] * 3 == [running.status() for _ in range(3)]
    assert not any(map(lives, pids))


def test_a_job_whose_shepherd_someone_killed_keeps_its_place_until_it_has_ended(running: Running, place: Place) -> None:
    running.start("echo $$ >pid; while [ ! -e end ]; do sleep 0.01; done; exit 4")
    pid = place.await_running("pid")
    os.kill(int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1]), 9)
    assert running.nothing_more()
    (place.folder / "end").touch()
    record = running.record()
    assert not lives(pid)
    assert record["provenance"]["shepherd_killed"]
    # Before Linux 6.15 nobody but its new parent learns it.
    assert record["outcome"]["exit_code"] in (4, None)


def test_a_job_has_no_terminal_and_is_out_of_reach_of_our_group(running: Running, place: Place) -> None:
    running.start("ps -o sid= -p $$ >sid")
    running.status()
    assert os.getsid(0) != int(place.lines("sid")[0])


def test_hundreds_of_jobs_leave_no_descriptor_open(tmp_path: Path) -> None:
    def descriptors() -> int:
        return len(os.listdir("/proc/self/fd"))

    (tmp_path / "first").mkdir()
    first = Running(tmp_path / "first", LocalEngine())
    first.start("exec true")
    assert "completed" == first.status()
    first.engine.close()
    first.journal.close()
    gc.collect()  # what other tests left open
    before = descriptors()  # with what is opened once and kept
    running = Running(tmp_path, LocalEngine())
    for number in range(300):
        running.start("exec true", number)
    assert ["completed"] * 300 == [running.status() for _ in range(300)]
    running.engine.close()
    running.journal.close()
    assert descriptors() <= before


def test_of_gpus_the_lowest_that_are_nobody_s_are_taken_by_the_names_that_we_were_given() -> None:
    devices = Devices("5,GPU-7f")
    first, second = devices.acquire(2), devices.acquire(1)
    assert (["5", "GPU-7f"], ["2"]) == ([*map(devices.name, first)], [*map(devices.name, second)])
    devices.release(first)
    assert [0] == devices.acquire(1)


def test_what_was_left_on_another_machine_is_reported(running: Running) -> None:
    token = {"host": "elsewhere", "shepherd": [1, 1]}
    assert 0 == running.engine.recover([LeftTask(1, 1, token, True)]).ended
    assert ["jobs that a killed runner may have left on elsewhere can only be ended there"] == running.warnings
