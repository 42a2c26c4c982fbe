from __future__ import annotations

from pathlib import Path

from jobmeter.errors import NoData
from jobmeter.kernel.cgroup import group as cgroup
from jobmeter.kernel.cgroup.limits import cpus_allowed, memory_allowed
from jobmeter.kernel.machine import THIS_MACHINE, Machine, cpu_count
from tests.parts import missing
from tests.running import interpreter, meter

GIB = 1 << 30


def machine(tmp_path: Path, mounts: str, groups: str, files: dict[str, str]) -> Machine:
    """A /proc and a /sys with 8 GiB of memory and these cgroups."""
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/meminfo").write_text(f"MemTotal: {8 * GIB // 1024} kB\nMemAvailable: 1 kB\n")
    (tmp_path / "proc/self/mountinfo").write_text(mounts)
    (tmp_path / "proc/self/cgroup").write_text(groups)
    for name, content in files.items():
        path = tmp_path / "sys" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
        (path.parent / "cgroup.procs").write_text("")
    return Machine(str(tmp_path / "proc"), str(tmp_path / "sys"))


V2 = "30 20 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"
V1 = (
    "30 20 0:26 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
    "31 20 0:27 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n"
)


def test_without_limits_it_is_what_the_machine_has(tmp_path: Path) -> None:
    fake = machine(tmp_path, V2, "0::/a\n", {"fs/cgroup/a/memory.max": "max\n", "fs/cgroup/a/cpu.max": "max 100000\n"})
    assert (8 * GIB, float(cpu_count())) == (memory_allowed(fake), cpus_allowed(fake))


def test_a_limit_of_a_group_above_counts_in_v2(tmp_path: Path) -> None:
    files = {
        "fs/cgroup/a/memory.max": f"{2 * GIB}\n",
        "fs/cgroup/a/b/memory.max": f"{4 * GIB}\n",
        "fs/cgroup/a/cpu.max": "50000 100000\n",
        "fs/cgroup/a/b/cpu.max": "max 100000\n",
    }
    fake = machine(tmp_path, V2, "0::/a/b\n", files)
    assert (2 * GIB, 0.5) == (memory_allowed(fake), cpus_allowed(fake))


def test_the_limit_that_applies_counts_in_v1(tmp_path: Path) -> None:
    files = {
        "fs/cgroup/memory/a/memory.stat": f"cache 0\nhierarchical_memory_limit {3 * GIB}\n",
        "fs/cgroup/cpu/a/cpu.cfs_quota_us": "150000\n",
        "fs/cgroup/cpu/a/cpu.cfs_period_us": "200000\n",
    }
    fake = machine(tmp_path, V1, "4:memory:/a\n5:cpu:/a\n", files)
    assert (3 * GIB, 0.75) == (memory_allowed(fake), cpus_allowed(fake))


def test_the_numbers_that_mean_no_limit_in_v1_are_none(tmp_path: Path) -> None:
    files = {
        "fs/cgroup/memory/a/memory.stat": "hierarchical_memory_limit 9223372036854771712\n",
        "fs/cgroup/cpu/a/cpu.cfs_quota_us": "-1\n",
        "fs/cgroup/cpu/a/cpu.cfs_period_us": "100000\n",
    }
    fake = machine(tmp_path, V1, "4:memory:/a\n5:cpu:/a\n", files)
    assert (8 * GIB, float(cpu_count())) == (memory_allowed(fake), cpus_allowed(fake))


def test_a_job_with_limits_of_its_own_is_allowed_no_more() -> None:
    """On the real kernel: from within a job that jobmeter limits."""
    try:
        group = cgroup.create_group(THIS_MACHINE, "probe")
    except NoData as reason:
        missing(str(reason))
    group.remove()
    script = (
        "from jobmeter.kernel.cgroup.limits import *; from jobmeter.kernel.machine import THIS_MACHINE as m;"
        "print(memory_allowed(m), cpus_allowed(m))"
    )
    done = meter(interpreter(), "-c", script, options=["--cpus", "0.5", "--memory", "256m", "--enforce"])
    assert f"{256 << 20} 0.5" == done.stdout.strip(), done.stderr
