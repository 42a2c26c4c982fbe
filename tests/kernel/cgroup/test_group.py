from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from jobmeter.errors import NoData
from jobmeter.kernel.cgroup import group as cgroup
from jobmeter.kernel.cgroup.group import BlockIo, CgroupMount, Cpu, JobGroup, Memory
from jobmeter.kernel.cgroup.v2 import GroupV2
from jobmeter.kernel.machine import THIS_MACHINE, Machine
from tests.parts import unless

V1 = """\
22 27 0:21 / /proc rw,relatime - proc proc rw
31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755
33 31 0:30 / /sys/fs/cgroup/cpu,cpuacct rw,nosuid,relatime shared:9 - cgroup cgroup rw,cpu,cpuacct
35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory
40 31 0:37 / /sys/fs/cgroup/systemd rw,relatime - cgroup cgroup rw,xattr,name=systemd
"""
V2 = "30 23 0:27 / /sys/fs/cgroup rw,nosuid,nodev,noexec,relatime shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"
UNIFIED = "41 31 0:38 / /sys/fs/cgroup/unified rw,relatime shared:5 - cgroup2 cgroup2 rw\n"
CONTAINER_V1 = (
    "600 590 0:32 /docker/0a1b /sys/fs/cgroup/memory ro,nosuid,relatime master:15 - cgroup cgroup rw,memory\n"
)
CONTAINER_V2 = "700 690 0:27 /../../../../.. /sys/fs/cgroup ro,relatime - cgroup2 cgroup rw,nsdelegate\n"

CPU_V1 = CgroupMount(1, frozenset({"rw", "cpu", "cpuacct"}), "/", "/sys/fs/cgroup/cpu,cpuacct")
MEMORY_V1 = CgroupMount(1, frozenset({"rw", "memory"}), "/", "/sys/fs/cgroup/memory")
SYSTEMD_V1 = CgroupMount(1, frozenset({"rw", "xattr", "name=systemd"}), "/", "/sys/fs/cgroup/systemd")


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (V1, [CPU_V1, MEMORY_V1, SYSTEMD_V1]),
        (V2, [CgroupMount(2, frozenset(), "/", "/sys/fs/cgroup")]),
        (V1 + UNIFIED, [CPU_V1, MEMORY_V1, SYSTEMD_V1, CgroupMount(2, frozenset(), "/", "/sys/fs/cgroup/unified")]),
        (CONTAINER_V1, [CgroupMount(1, frozenset({"rw", "memory"}), "/docker/0a1b", "/sys/fs/cgroup/memory")]),
        (CONTAINER_V2, [CgroupMount(2, frozenset(), "/../../../../..", "/sys/fs/cgroup")]),
        ("", []),
    ],
    ids=["v1", "v2", "hybrid", "v1 container", "v2 container", "none"],
)
def test_cgroup_mounts_are_found_among_all_mounts(content: str, expected: list[CgroupMount]) -> None:
    assert expected == cgroup.parse_mountinfo(content)


@pytest.mark.parametrize(
    ("root", "path", "expected"),
    [
        ("/", "/", "/cg"),
        ("/", "/user.slice/x.scope", "/cg/user.slice/x.scope"),
        ("/docker/0a1b", "/docker/0a1b", "/cg"),
        ("/docker/0a1b", "/docker/0a1b/job", "/cg/job"),
        ("/docker/0a1b", "/docker/0a1bc", None),
        ("/docker/0a1b", "/", None),
        ("/", "/../other", None),
        ("/", "/../../init.scope", None),
        ("/../..", "/", None),
    ],
)
def test_a_group_outside_what_is_mounted_has_no_directory(root: str, path: str, expected: str | None) -> None:
    assert expected == cgroup.own_directory(CgroupMount(2, frozenset(), root, "/cg"), path)


def machine_with(folder: Path, mountinfo: str, groups: str) -> Machine:
    (folder / "self").mkdir()
    (folder / "self" / "mountinfo").write_text(mountinfo)
    (folder / "self" / "cgroup").write_text(groups)
    return Machine(proc=str(folder), sys=str(folder / "sys"))


@pytest.mark.parametrize(
    ("mountinfo", "groups", "expected"),
    [
        (V2, "0::/user.slice\n", ({}, "{sys}/fs/cgroup/user.slice")),
        (
            V1 + UNIFIED,
            "9:cpu,cpuacct:/a\n8:memory:/b\n1:name=systemd:/\n0::/u\n",
            (
                {
                    "cpu": "{sys}/fs/cgroup/cpu,cpuacct/a",
                    "cpuacct": "{sys}/fs/cgroup/cpu,cpuacct/a",
                    "memory": "{sys}/fs/cgroup/memory/b",
                    "name=systemd": "{sys}/fs/cgroup/systemd",
                },
                "{sys}/fs/cgroup/unified/u",
            ),
        ),
        (CONTAINER_V1, "8:memory:/docker/0a1b\n", ({"memory": "{sys}/fs/cgroup/memory"}, None)),
        (CONTAINER_V1, "8:memory:/docker/other\n", ({}, None)),
        (CONTAINER_V2, "0::/\n", ({}, None)),
        ("", "0::/\n", ({}, None)),
    ],
    ids=["v2", "hybrid", "v1 container", "outside", "v2 namespace", "not mounted"],
)
def test_the_groups_of_this_process_are_found(
    tmp_path: Path, mountinfo: str, groups: str, expected: tuple[dict[str, str], str | None]
) -> None:
    machine = machine_with(tmp_path, mountinfo, groups)
    v1, v2 = expected
    wanted = (
        {controller: path.format(sys=machine.sys) for controller, path in v1.items()},
        v2 and v2.format(sys=machine.sys),
    )
    assert wanted == cgroup.own_directories(machine)


@pytest.mark.parametrize(
    ("mountinfo", "groups", "content", "expected"),
    [
        (V1 + UNIFIED, "9:cpu,cpuacct:/a\n0::/\n", {"cpu,cpuacct/a/cpuacct.usage": "2500000123\n"}, 2500000123),
        (V1, "9:cpu,cpuacct:/\n", {"cpu,cpuacct/cpuacct.usage": "77\n"}, 77),
        (
            V2,
            "0::/u\n",
            {"u/cpu.stat": "usage_usec 2500000\nuser_usec 9\nsystem_usec 1\n", "u/cgroup.events": "populated 1\n"},
            2500000000,
        ),
        # The root of v2: it has no cgroup.events, and counts by ticks.
        (V2, "0::/\n", {"cpu.stat": "usage_usec 2500000\nuser_usec 9\nsystem_usec 1\n"}, None),
        ("", "0::/\n", {}, None),
    ],
    ids=["v1", "root of v1", "v2", "root of v2", "not mounted"],
)
def test_the_account_of_the_group_around_this_process_is_read_where_it_is_exact(
    tmp_path: Path, mountinfo: str, groups: str, content: dict[str, str], expected: int | None
) -> None:
    machine = machine_with(tmp_path, mountinfo, groups)
    for name, text in content.items():
        path = Path(machine.sys, "fs/cgroup", name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    account = cgroup.enclosing_cpu_account(machine)
    assert (expected is not None) == bool(account)
    if expected is not None:
        assert expected == cgroup.read_cpu_account(account)


def test_where_nothing_is_mounted_there_is_no_group_and_a_reason(tmp_path: Path) -> None:
    with pytest.raises(NoData, match="no cgroup hierarchy is mounted here"):
        cgroup.create_group(machine_with(tmp_path, "", "0::/\n"), "x")


def test_without_proc_there_is_no_group_and_the_reason_names_the_file(tmp_path: Path) -> None:
    with pytest.raises(NoData, match="mountinfo: No such file"):
        cgroup.create_group(Machine(proc=str(tmp_path)), "x")


def dead_pid() -> int:
    child = subprocess.Popen(["true"])
    child.wait()
    return child.pid


def test_sweeping_removes_only_empty_groups_of_dead_jobmeters(tmp_path: Path) -> None:
    (tmp_path / "jobmeter-7-full" / "child").mkdir(parents=True)
    for name in ("jobmeter-7-abc", f"jobmeter-{os.getpid()}-left", "other-7-abc", "user.slice"):
        (tmp_path / name).mkdir()
    held = cgroup.make_held(str(tmp_path / "jobmeter-7-held"))
    cgroup.remove_empty_groups(str(tmp_path))
    # A pid says nothing: one that lives here may be another's, of another pid namespace.
    left = {"jobmeter-7-full", "jobmeter-7-held", "other-7-abc", "user.slice"}
    assert left == set(os.listdir(tmp_path))
    os.close(held)
    cgroup.remove_empty_groups(str(tmp_path))
    assert left - {"jobmeter-7-held"} == set(os.listdir(tmp_path))


def test_a_group_is_held_however_many_sweep_while_it_is_made(tmp_path: Path) -> None:
    ended = threading.Event()

    def sweep() -> None:
        while not ended.is_set():
            cgroup.remove_empty_groups(str(tmp_path))

    sweepers = [threading.Thread(target=sweep) for _ in range(2)]
    for sweeper in sweepers:
        sweeper.start()
    try:
        for number in range(200):
            path = tmp_path / f"jobmeter-1-{number}"
            held = cgroup.make_held(str(path))
            assert path.exists()
            os.close(held)
    finally:
        ended.set()
        for sweeper in sweepers:
            sweeper.join()


def test_sweeping_what_is_not_there_is_no_error(tmp_path: Path) -> None:
    cgroup.remove_empty_groups(str(tmp_path / "gone"))
    assert [] == os.listdir(tmp_path)


@pytest.mark.parametrize(
    ("mountinfo", "groups", "files", "expected"),
    [
        (V1, "8:memory:/b\n", {"sys/fs/cgroup/memory/b/memory.oom_control": "under_oom 0\noom_kill 4\n"}, 4),
        (V2, "0::/b\n", {"sys/fs/cgroup/b/memory.events": "low 0\noom 2\noom_kill 3\noom_group_kill 0\n"}, 3),
        (V2, "0::/\n", {"vmstat": "nr_free_pages 1\noom_kill 9\n"}, 9),
        (V2, "0::/\n", {}, None),
    ],
    ids=["v1", "v2", "root of v2", "unknown"],
)
def test_the_kills_around_this_process_are_the_kernel_s_count(
    tmp_path: Path, mountinfo: str, groups: str, files: dict[str, str], expected: int | None
) -> None:
    machine = machine_with(tmp_path, mountinfo, groups)
    for name, content in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(content)
    assert expected == cgroup.enclosing_oom_kills(machine)


V2_FILES = {
    "cgroup.procs": "17\n18\n",
    "memory.current": "30000000\n",
    "memory.peak": "45000000\n",
    "memory.swap.current": "8192\n",
    "memory.max": "max\n",
    "memory.swap.max": "max\n",
    "memory.oom.group": "0\n",
    "memory.stat": "anon 20000000\nfile 7000000\nkernel 900000\nshmem 1000000\n"
    "inactive_anon 1\nactive_anon 2\ninactive_file 4000000\nactive_file 2000000\nunevictable 0\n",
    "memory.events": "low 0\nhigh 0\nmax 12\noom 2\noom_kill 1\noom_group_kill 0\n",
    "memory.pressure": "some avg10=0.00 avg60=0.00 avg300=0.00 total=1500000\n"
    "full avg10=0.00 avg60=0.00 avg300=0.00 total=1000000\n",
    "cpu.stat": "usage_usec 2500000\nuser_usec 2000000\nsystem_usec 500000\nnice_usec 0\n"
    "nr_periods 10\nnr_throttled 2\nthrottled_usec 750000\nnr_bursts 0\nburst_usec 0\n",
    "cpu.max": "max 100000\n",
    "io.stat": "254:0 rbytes=4096 wbytes=8192 rios=1 wios=2 dbytes=0 dios=0\n",
    "pids.peak": "7\n",
}


def group_v2(folder: Path, files: dict[str, str]) -> GroupV2:
    for name, content in files.items():
        (folder / name).write_text(content)
    return GroupV2(str(folder), str(folder.parent))


def test_a_v2_group_reports_what_its_files_say(tmp_path: Path) -> None:
    group = group_v2(tmp_path, V2_FILES)
    # Shared memory is in `file` of memory.stat and cannot be dropped: the two file lists have none of it.
    assert Memory(30000000, 20000000, 6000000, 4000000, 8192) == group.memory()
    assert Cpu(2.5, 2.0, 0.5, 0.75) == group.cpu()
    assert (2_500_000_000, 45000000, 7, 1) == (
        group.cpu_nanoseconds(),
        group.memory_peak(),
        group.pids_peak(),
        group.oom_kills(),
    )
    assert BlockIo(4096, 8192) == group.io()
    assert (1.5, None) == (group.pressure_seconds("memory"), group.pressure_seconds("cpu"))
    assert [17, 18] == group.processes()


def test_a_v2_group_of_an_old_kernel_leaves_out_what_it_lacks(tmp_path: Path) -> None:
    absent = ("memory.peak", "memory.swap.current", "pids.peak", "io.stat", "memory.events", "memory.pressure")
    files = {name: content for name, content in V2_FILES.items() if name not in absent}
    files["cpu.stat"] = "usage_usec 2500000\nuser_usec 2000000\nsystem_usec 500000\n"
    group = group_v2(tmp_path, files)
    assert Memory(30000000, 20000000, 6000000, 4000000, None) == group.memory()
    assert Cpu(2.5, 2.0, 0.5, None) == group.cpu()
    assert (None,) * 4 == (group.pids_peak(), group.io(), group.oom_kills(), group.pressure_seconds("memory"))


def test_an_empty_v2_group_knows_nothing_and_says_nothing(tmp_path: Path) -> None:
    group = group_v2(tmp_path, {})
    assert (None,) * 4 == (group.memory(), group.memory_peak(), group.cpu(), group.cpu_nanoseconds())


def test_limits_of_a_v2_group_are_written_as_the_kernel_reads_them(tmp_path: Path) -> None:
    group = group_v2(
        tmp_path, V2_FILES | {"memory.max": "", "memory.swap.max": "", "memory.oom.group": "", "cpu.max": ""}
    )
    group.limit_memory(64 * 2**20)
    group.limit_cpus(1.5)
    written = {
        name: (tmp_path / name).read_text() for name in ("memory.max", "memory.swap.max", "memory.oom.group", "cpu.max")
    }
    assert {
        "memory.max": "67108864",
        "memory.swap.max": "0",
        "memory.oom.group": "1",
        "cpu.max": "150000 100000",
    } == written


def _why_no_v1() -> str:
    if os.geteuid() != 0:
        return "needs root, to make a group"
    try:
        v1, _ = cgroup.own_directories(THIS_MACHINE)
    except NoData as reason:
        return str(reason)
    if not {"memory", "cpuacct", "cpu", "pids"} <= v1.keys():
        return "the v1 controllers memory, cpuacct, cpu and pids are not mounted here"
    return "" if all(os.access(path, os.W_OK) for path in v1.values()) else "the v1 hierarchies are read-only"


real_v1 = unless(_why_no_v1())


@pytest.fixture
def group() -> Iterator[JobGroup]:
    group = cgroup.create_group(THIS_MACHINE, "unittest")
    yield group
    group.remove()


def run_in(group: JobGroup, program: str) -> int:
    """Run a Python program inside the group from its first line on; its exit code."""
    child = subprocess.Popen([sys.executable, "-c", f"input()\n{program}"], stdin=subprocess.PIPE)
    group.add(child.pid)
    child.communicate(b"\n")
    return child.returncode


@real_v1
def test_a_real_v1_group_counts_the_cpu_of_its_job(group: JobGroup) -> None:
    before = os.times()
    assert 0 == run_in(group, "import time\nwhile time.process_time() < 0.4: pass")
    after = os.times()
    waited_for = (after.children_user - before.children_user) + (after.children_system - before.children_system)
    cpu = group.cpu()
    assert cpu is not None
    # The interpreter started before it came into the group: some of wait's figure is not the group's.
    assert waited_for - 0.15 < cpu.total < waited_for + 0.05
    assert 1 == group.version
    assert cpu.total == pytest.approx((group.cpu_nanoseconds() or 0) / 1e9, abs=0.01)


@real_v1
def test_a_real_v1_group_keeps_the_peak_of_its_job(group: JobGroup) -> None:
    assert 0 == run_in(group, "held = bytearray(64 * 2**20)\nfor i in range(0, len(held), 4096): held[i] = 1")
    peak, memory = group.memory_peak(), group.memory()
    assert peak is not None
    assert memory is not None
    assert 64 * 2**20 <= peak < 96 * 2**20
    assert memory.current < 32 * 2**20
    assert 0 == group.oom_kills()


@real_v1
def test_a_real_v1_group_lists_its_processes_and_their_peak(group: JobGroup) -> None:
    with subprocess.Popen(["sleep", "60"]) as first, subprocess.Popen(["sleep", "60"]) as second:
        for child in (first, second):
            group.add(child.pid)
        inside = group.processes()
        first.kill()
        second.kill()
    assert {first.pid, second.pid} == set(inside)
    assert group.pids_peak() in (2, None)  # pids.peak is there since Linux 6.1
    assert [] == group.processes()


@real_v1
def test_a_real_v1_group_over_its_memory_limit_counts_the_kill(group: JobGroup) -> None:
    group.limit_memory(48 * 2**20)
    assert -9 == run_in(group, "held = b'x' * (200 * 2**20)")
    peak = group.memory_peak()
    assert 1 == group.oom_kills()
    assert peak is not None
    assert peak <= 48 * 2**20


@real_v1
def test_a_real_v1_group_over_its_cpu_limit_is_throttled(group: JobGroup) -> None:
    group.limit_cpus(0.2)
    assert 0 == run_in(group, "import time\nwhile time.process_time() < 0.2: pass")
    cpu = group.cpu()
    assert cpu is not None
    assert cpu.throttled is not None
    assert cpu.throttled > 0


@real_v1
def test_removing_a_real_v1_group_lets_its_processes_go_on_outside() -> None:
    group = cgroup.create_group(THIS_MACHINE, "removed")
    with subprocess.Popen(["sleep", "60"]) as child:
        group.add(child.pid)
        group.remove()
        runs, directories = child.poll() is None, Path(f"/proc/{child.pid}/cgroup").read_text()
        child.kill()
    assert (True, False, False) == (runs, os.path.exists(group.path), "jobmeter" in directories)
    v1, _ = cgroup.own_directories(THIS_MACHINE)
    name = os.path.basename(group.path)
    assert [] == [path for path in v1.values() if os.path.exists(f"{path}/{name}")]


@real_v1
def test_adding_a_process_that_ended_is_no_error(group: JobGroup) -> None:
    group.add(dead_pid())
    assert [] == group.processes()
