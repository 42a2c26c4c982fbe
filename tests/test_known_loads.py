"""Loads whose true use is known, on the real kernel, as root and as an ordinary user."""

from __future__ import annotations

import os

import pytest

from tests.parts import need_root
from tests.running import USERS, interpreter, meter, meter_load

MIB = 1 << 20


@USERS
@pytest.mark.parametrize("load", ["short-sequential", "short-parallel"])
def test_cpu_of_300_short_processes_is_all_counted(load: str, user: int) -> None:
    done = meter_load(load, user=user)
    assert done.value("cpu_seconds") == pytest.approx(done.true("cpu"), rel=0.02)
    # On a busy machine so many processes share the CPUs that perf would slow them down.
    stopped = str(done.record["provenance"]["collectors"]["perf"].get("failed", "")).startswith("stopped after ")
    assert done.is_exact_cpu() or (stopped and done.quality("cpu_seconds") == "at least")


@USERS
def test_cpu_of_children_nobody_waited_for_is_counted(user: int) -> None:
    done = meter_load("unwaited", user=user)
    # What a hypervisor stole is taken off where only perf counts.
    stolen = done.record["measurements"].get("perf_stolen_seconds", {}).get("total", 0.0)
    assert 0.97 * done.true("cpu") - stolen <= done.value("cpu_seconds") <= 1.05 * done.true("cpu")
    assert done.record["measurements"]["rusage_cpu_seconds"]["total"] < 0.5 * done.true("cpu")


@USERS
@pytest.mark.parametrize("attempt", [1, 2, 3])
def test_a_burst_of_memory_between_two_samples_is_seen(user: int, attempt: int) -> None:
    done = meter_load("burst", options=["--interval", "1"], user=user)
    assert done.value("memory_peak_bytes") == pytest.approx(done.true("memory"), rel=0.03)
    # Without a cgroup, memory beside the process's own may have gone unseen.
    assert done.quality("memory_peak_bytes") in (("exact", "sampled") if user == 0 else ("sampled", "at least"))


@USERS
def test_memory_shared_by_forked_children_is_counted_once(user: int) -> None:
    done = meter_load("shared", user=user)
    assert done.value("memory_peak_bytes") == pytest.approx(done.true("memory"), rel=0.05)
    assert done.record["measurements"]["proc_rss_total"]["peak"] > 4.5 * 300 * MIB


@USERS
@pytest.mark.parametrize("load", ["daemon-launcher-stays", "daemon-launcher-exits"])
def test_a_daemon_is_measured_to_its_end_when_orphans_are_waited_for(load: str, user: int) -> None:
    done = meter_load(load, options=["--orphans", "wait"], user=user)
    assert done.value("cpu_seconds") == pytest.approx(done.true("cpu"), rel=0.05)
    assert done.value("memory_peak_bytes") == pytest.approx(done.true("memory"), rel=0.05)


@USERS
def test_a_daemon_is_left_alone_by_default_and_reported(user: int) -> None:
    done = meter_load("daemon-launcher-exits", user=user)
    assert done.record["provenance"]["left_running"] == 1
    assert done.quality("cpu_seconds") == "at least"
    assert "1 process still runs" in done.stderr
    # It holds the pipe that the summary is read from: it wrote this after jobmeter had ended, and nobody ended it.
    (to_its_end,) = (line for line in done.truth if "memory" in line)
    assert to_its_end["cpu"] >= 2


@USERS
def test_a_process_named_like_a_stat_line_is_read_right(user: int) -> None:
    done = meter_load("odd-name", user=user)
    assert done.value("cpu_seconds") == pytest.approx(done.true("cpu"), rel=0.02)
    assert done.record["measurements"]["proc_cpu_seconds"]["total"] == pytest.approx(done.true("cpu"), abs=0.05)


def test_memory_of_500_sleepers_has_the_kernels_share_in_it() -> None:
    need_root("for a cgroup")
    done = meter_load("sleepers", options=["--measurements", "default,cgroup_anon"])
    kernel = done.value("memory_peak_bytes") - done.record["measurements"]["cgroup_anon"]["peak"]
    assert done.record["usage"]["memory_peak_bytes"]["from"] == "cgroup_mem_peak"
    # Page tables, stacks and task structures: some 90 KiB a process, which a limit would count.
    assert 500 * 40 * 1024 < kernel < 500 * 200 * 1024
    assert done.value("processes_peak") >= 500


@USERS
def test_four_busy_threads_never_exceed_the_cores(user: int) -> None:
    done = meter_load("threads", user=user)
    cores = os.cpu_count() or 1
    # What the interpreter takes to end comes after its own account.
    assert done.value("cpu_seconds") == pytest.approx(done.true("cpu"), rel=0.02, abs=0.03)
    for key in ("perf_cpu_percent", "proc_cpu_percent") if user else ("cgroup_cpu_percent", "proc_cpu_percent"):
        # A run shorter than a second has no rate.
        assert done.record["measurements"].get(key, {"peak": 0})["peak"] <= 100 * cores
    assert done.value("cpu_peak_percent") >= 90 * done.true("cpu") / done.record["wall_seconds"]


@USERS
def test_bytes_written_are_those_that_went_to_the_disk(user: int) -> None:
    done = meter_load("write", user=user)
    assert done.value("write_bytes") == pytest.approx(200 * MIB, rel=0.05)


def test_reads_from_the_cache_are_not_disk_reads() -> None:
    write_then_read = "head -c 200M /dev/zero > @/file; sync @/file; cat @/file @/file > /dev/null"
    done = meter("sh", "-c", write_then_read)
    assert done.value("write_bytes") == pytest.approx(200 * MIB, rel=0.05)
    assert done.value("read_bytes") < 10 * MIB


@USERS
def test_2000_sleeping_processes_are_all_seen(user: int) -> None:
    done = meter(
        interpreter(), "-c",
        "import os, time\n"
        "pids = [os.posix_spawn('/bin/sleep', ['sleep', '60'], {}) for _ in range(2000)]\n"
        "time.sleep(2)\n"
        "for pid in pids: os.kill(pid, 9)\n"
        "for pid in pids: os.waitpid(pid, 0)\n",
        user=user,
    )  # fmt: skip
    assert done.value("processes_peak") == 2001
    assert len(done.record["processes"]) <= 21
    assert sum(entry.get("processes", 1) for entry in done.record["processes"]) >= 2001


@USERS
def test_a_command_of_a_few_milliseconds_has_a_record(user: int) -> None:
    done = meter("sh", "-c", "i=0; while [ $i -lt 3000 ]; do i=$((i+1)); done", user=user)
    assert done.value("cpu_seconds") > 0.001
    assert done.value("memory_peak_bytes") > 300 * 1024
    assert done.value("processes_peak") == 1


@USERS
def test_the_size_of_the_launcher_does_not_show(user: int) -> None:
    done = meter("true", user=user)
    assert 500 * 1024 < done.value("memory_peak_bytes") < 3 * MIB


@USERS
def test_a_fork_bomb_of_short_processes_is_counted_and_survived(user: int) -> None:
    done = meter("sh", "-c", "i=0; while [ $i -lt 3000 ]; do /bin/true; i=$((i+1)); done", user=user)
    rusage = done.record["measurements"]["rusage_cpu_seconds"]["total"]
    assert done.value("cpu_seconds") == pytest.approx(rusage, rel=0.03)
    assert len(done.record["processes"]) <= 21
