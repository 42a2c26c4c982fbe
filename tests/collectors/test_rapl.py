"""The energy of a job: its share of what the machine counted, by CPU time. And the estimate where nothing counts."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from jobmeter.collectors.contract import Moment, Readings, Target
from jobmeter.collectors.rapl import RaplCollector
from jobmeter.collectors.tdp import TdpCollector
from jobmeter.errors import NoData
from jobmeter.kernel.machine import TICKS_PER_SECOND, Machine
from tests.kernel.test_powercap import zone_files
from tests.parts import need_root
from tests.running import NOBODY, jobmeter, meter
from tests.sysfs import process_line, write_files

ZONES = (("intel-rapl:0", "package-0"), ("intel-rapl:1", "package-1"), ("intel-rapl:2", "package-2"),
         ("intel-rapl:0:0", "core"), ("intel-rapl:0:1", "dram"))  # fmt: skip
MOST = 10_000_000


class Powered:
    """A machine with three packages, and a job: process 20 below the shepherd 10."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.machine = Machine(proc=str(folder / "proc"), sys=str(folder / "sys"))
        self.use(job=0, machine=0)
        self.count(*[0] * len(ZONES))
        self.target = Target(10, 20, machine=self.machine)

    def use(self, *, job: float, machine: float) -> None:
        """So many CPU seconds were used by now."""
        ticks, busy = round(job * TICKS_PER_SECOND), round(machine * TICKS_PER_SECOND)
        lines = {"10/stat": process_line(10, 1), "20/stat": process_line(20, 10, ticks), "loadavg": "0 0 0 1/2 20"}
        write_files(self.folder / "proc", {**lines, "stat": f"cpu  {busy} 0 0 99999 0 0 0 0 0 0"})

    def count(self, *joules: float) -> None:
        """The counters of ZONES by now, modulo their range."""
        for (name, kind), amount in zip(ZONES, joules):
            write_files(self.folder / "sys", zone_files(name, kind, round(amount * 1e6) % MOST, MOST))


@pytest.fixture
def powered(tmp_path: Path) -> Powered:
    return Powered(tmp_path)


def read(source: object) -> Readings:
    return source.read(Moment(time.monotonic()))  # type: ignore[attr-defined,no-any-return]


def test_the_job_has_its_share_of_packages_and_memory_from_reading_to_reading(powered: Powered) -> None:
    source = RaplCollector().open(powered.target, RaplCollector.default)
    powered.use(job=1, machine=4)
    powered.count(5, 2, 1, 3, 4)
    assert {"rapl_package": 8.0, "rapl_core": 3.0, "rapl_dram": 4.0, "rapl_energy": 3.0} == read(source)
    # Alone on the machine; and while it sleeps, others pay.
    powered.use(job=3, machine=6)
    powered.count(6, 2, 1, 3, 4)
    assert 4.0 == read(source)["rapl_energy"]
    powered.use(job=3, machine=60)
    powered.count(7, 2, 1, 3, 4)
    assert 4.0 == read(source)["rapl_energy"]
    source.close()


def test_counters_that_wrap_around_lose_nothing(powered: Powered) -> None:
    source = RaplCollector().open(powered.target, RaplCollector.default)
    for step in range(1, 8):  # the first package wraps around at 10 J, and again
        powered.use(job=step, machine=step)
        powered.count(4 * step, 0, 0, 0, 0)
        readings = read(source)
    assert (28.0, 28.0) == (readings["rapl_package"], readings["rapl_energy"])
    source.close()


def test_without_counters_it_says_so(tmp_path: Path) -> None:
    with pytest.raises(NoData, match="no energy counters"):
        RaplCollector().check(Machine(sys=str(tmp_path)))


def test_what_may_not_be_read_is_explained(powered: Powered) -> None:
    need_root("to become another user")
    for name, _ in ZONES:
        os.chmod(powered.folder / f"sys/class/powercap/{name}/energy_uj", 0o400)
    pid = os.fork()
    if pid == 0:  # as an ordinary user
        os.setresuid(NOBODY, NOBODY, NOBODY)
        try:
            RaplCollector().check(powered.machine)
        except NoData as reason:
            os._exit(0 if "only root may read it" in str(reason) and "chmod a+r" in str(reason) else 3)
        finally:
            os._exit(4)
    assert 0 == os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


@pytest.fixture(autouse=True)
def anyone_may_enter(tmp_path: Path) -> None:
    for folder in (tmp_path, *tmp_path.parents):
        if folder.stat().st_uid == os.getuid() and folder != Path("/"):
            folder.chmod(folder.stat().st_mode | 0o111)


def test_the_estimate_is_the_power_of_a_cpu_times_cpu_time_and_is_called_estimated() -> None:
    cpus = os.cpu_count() or 1
    burn = "import time\nwhile time.process_time() < 0.3: pass"
    environment = {"JOBMETER_CPU_WATTS": str(50 * cpus)}
    done = meter(
        "python3", "-c", burn, options=("--measurements", "default,tdp_energy"), env=with_settings(environment)
    )
    energy, cpu = done.record["usage"]["energy_joules"], done.record["usage"]["cpu_seconds"]
    assert "estimated" == energy["quality"]
    assert energy["value"] == pytest.approx(50 * cpu["value"], rel=0.1, abs=2.0)


def test_the_estimate_needs_the_power_of_the_cpus() -> None:
    done = jobmeter("run", "--measurements", "tdp_energy", "--", "true", env=with_settings({}))
    assert 2 == done.returncode
    assert "cpu_watts" in done.stderr
    bad = jobmeter("run", "--measurements", "tdp_energy", "--", "true", env=with_settings({"JOBMETER_CPU_WATTS": "x"}))
    assert 2 == bad.returncode
    assert "JOBMETER_CPU_WATTS: 'x' is not a number above 0" in bad.stderr


def with_settings(settings: dict[str, str]) -> dict[str, str]:
    from tests.running import environment, workplace

    return {**environment(), "HOME": workplace(), **settings}


def test_the_estimate_is_off_by_default() -> None:
    assert "tdp_energy" in TdpCollector.default
    assert "energy_joules" not in meter("true", env=with_settings({"JOBMETER_CPU_WATTS": "90"})).record["usage"]
