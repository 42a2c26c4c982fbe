"""Threads one by one, against threads that know what they used."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from jobmeter.collectors.contract import Moment, Target
from jobmeter.collectors.thread import ThreadCollector
from jobmeter.errors import NoData
from jobmeter.kernel.machine import Machine
from jobmeter.kernel.numa import node_of_cpus, parse_cpu_list
from jobmeter.kernel.procfs import ThreadReading, parse_thread
from tests.running import USERS, jobmeter, meter
from tests.sysfs import machine, process_line, write_files

SHARES = """
import json, sys, threading, time
used, done = {}, threading.Barrier(4)
def work(name, seconds):
    open(f"/proc/self/task/{threading.get_native_id()}/comm", "w").write(name)
    while time.thread_time() < seconds: pass
    used[name] = time.thread_time()
    done.wait()
    time.sleep(1)  # to be seen once more
threads = [threading.Thread(target=work, args=pair) for pair in (("three", 3.0), ("two", 2.0), ("one", 1.0))]
for thread in threads: thread.start()
done.wait()
json.dump(used, open(sys.argv[1] + "/used", "w"))
for thread in threads: thread.join()
"""


@USERS
def test_threads_of_known_shares_have_them(user: int) -> None:
    done = meter("python3", "-S", "-c", SHARES, "@", options=("--threads", "--interval", "0.2"), user=user)
    folder = Path(done.stderr.split("record")[-1].split()[-1]).parents[2]
    truth = json.loads((folder / "used").read_text())
    by_name = {entry["name"]: entry for entry in done.record["threads"] if "tid" in entry}
    for name, seconds in truth.items():
        assert by_name[name]["cpu_seconds"] == pytest.approx(seconds, rel=0.03), name
        assert by_name[name]["cores"]
    assert ["three", "two", "one"] == [entry["name"] for entry in done.record["threads"] if entry["name"] in truth]
    total = sum(entry["cpu_seconds"] for entry in done.record["threads"])
    assert total == pytest.approx(done.value("cpu_seconds"), rel=0.01)
    assert 0 < done.record["measurements"]["thread_busiest_percent"]["peak"] < 130


FLEETING = """
import threading, time
def work():
    until = time.thread_time() + 0.004
    while time.thread_time() < until: pass
for _ in range(300):
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
"""


@USERS
def test_threads_that_come_and_go_are_in_the_sum(user: int) -> None:
    done = meter("python3", "-S", "-c", FLEETING, options=("--threads",), user=user)
    assert done.value("cpu_seconds") > 1.2
    assert done.is_exact_cpu()
    assert done.value("cpu_seconds") == pytest.approx(sum(entry["cpu_seconds"] for entry in done.record["threads"]))
    assert len(done.record["threads"]) <= 21


def test_without_the_option_no_thread_is_read() -> None:
    record = meter("true").record
    assert "threads" not in record
    assert "thread" not in record["provenance"]["collectors"]


def test_threads_go_with_other_measurements() -> None:
    record = meter("sleep", "0.3", options=("--threads", "--measurements=-proc_read_bytes")).record
    assert "proc_read_bytes" not in record["measurements"]
    assert "proc_processes" in record["measurements"]
    assert record["threads"]
    assert 2 == jobmeter("run", "--threads", "--measurements", "none", "--", "true").returncode


def test_a_thread_of_any_name_is_parsed() -> None:
    stat = b"7 (a) R 1 (b) S " + b" ".join([b"0"] * 35) + b" 5 0 0"
    assert ThreadReading(7, "a) R 1 (b", 123, 45, 5) == parse_thread(7, b"123 45 6\n", stat)
    with pytest.raises(ValueError, match="not a schedstat"):
        parse_thread(7, b"123\n", stat)


def test_the_nodes_of_cpus(tmp_path: Path) -> None:
    nodes = {"devices/system/node/node0/cpulist": "0-1,4", "devices/system/node/node1/cpulist": "2-3"}
    nodes |= {"devices/system/node/node2/cpulist": "", "devices/system/node/possible": "0-2"}
    assert {0: 0, 1: 0, 4: 0, 2: 1, 3: 1} == node_of_cpus(machine(tmp_path, nodes))
    assert {} == node_of_cpus(Machine(sys=str(tmp_path / "none")))
    assert [0, 1, 2, 7] == parse_cpu_list("0-2,7\n")
    with pytest.raises(ValueError, match="not a list of CPUs"):
        parse_cpu_list("0-x")


def test_placement_is_counted_over_two_nodes(tmp_path: Path) -> None:
    """A process with two threads, of which one moves from a core of the first node to one of the second."""
    proc = tmp_path / "proc"
    line = "{pid} (job) S {parent} " + "0 " * 15 + "2 0 77 1000 10 " + "0 " * 14 + "{core} 0 0 0 0"

    def write(core: int, ran: int) -> None:
        for pid, parent in ((10, 1), (20, 10)):
            (proc / f"{pid}/task").mkdir(parents=True, exist_ok=True)
            (proc / f"{pid}/stat").write_text(line.format(pid=pid, parent=parent, core=0))
        for thread, where in ((20, 0), (21, core)):
            (proc / f"20/task/{thread}").mkdir(exist_ok=True)
            (proc / f"20/task/{thread}/stat").write_text(line.format(pid=thread, parent=10, core=where))
            (proc / f"20/task/{thread}/schedstat").write_text(f"{ran} 0 1\n")
        (proc / "loadavg").write_text("0 0 0 1/2 20\n")
        (proc / "self").mkdir(exist_ok=True)
        (proc / "self/schedstat").write_text("0 0 0\n")

    write(core=1, ran=1000)
    nodes = {"devices/system/node/node0/cpulist": "0-1", "devices/system/node/node1/cpulist": "2-3"}
    here = machine(tmp_path, nodes, proc=str(proc))
    source = ThreadCollector().open(Target(10, 20, machine=here), ThreadCollector.default)
    assert 1 == source.read(Moment(0.0))["thread_nodes"]
    write(core=3, ran=2000)
    readings = source.read(Moment(1.0))
    assert (2, 1) == (readings["thread_nodes"], readings["thread_migrations"])
    moved = next(entry for entry in source.threads() if entry["tid"] == 21)
    assert ([1, 3], [0, 1], 1) == (moved["cores"], moved["nodes"], moved["migrations"])
    source.close()


def test_threads_of_a_process_that_has_the_pid_of_an_ended_job_are_not_the_jobs(tmp_path: Path) -> None:
    def write(line: str, ran: int) -> None:
        write_files(tmp_path, {"20/stat": line, "20/task/20/stat": line, "20/task/20/schedstat": f"{ran} 0 1"})

    write_files(tmp_path, {"loadavg": "0 0 0 1/2 20", "self/schedstat": "0 0 0"})
    write(process_line(20, 1), ran=1_000_000_000)
    target = Target(20, 20, root_is_job=True, machine=machine(tmp_path, proc=str(tmp_path)))
    source = ThreadCollector().open(target, ThreadCollector.default)
    write(process_line(20, 1).replace(" 77 ", " 99 "), ran=5_000_000_000)  # 77: when the process started
    assert {"thread_migrations": 0} == source.read(Moment(1.0))
    assert [0.0] == [entry["cpu_seconds"] for entry in source.threads()]
    source.close()


def test_a_kernel_without_schedstat_says_so(tmp_path: Path) -> None:
    with pytest.raises(NoData, match="schedstat"):
        ThreadCollector().check(Machine(proc=str(tmp_path)))
