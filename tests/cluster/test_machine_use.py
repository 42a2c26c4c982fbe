"""What a whole machine uses, from folders that look like /proc."""

from __future__ import annotations

from pathlib import Path

import pytest

from jobmeter.cluster.machine_use import MachineUse
from jobmeter.kernel.machine import THIS_MACHINE, Machine

FILES = {
    "stat": "cpu  1000 0 0 5000 0 0 0 0 0 0\n",
    "meminfo": "MemTotal: 1000 kB\nMemAvailable: 400 kB\n",
    "loadavg": "1.50 1.00 1.00 2/100 12345\n",
    "diskstats": "   8 0 sda 1 0 100 0 1 0 200 0 0 0 0\n   8 1 sda1 1 0 100 0 1 0 200 0 0 0 0\n",
    "net/dev": "a\nb\n  lo: 9 0 0 0 0 0 0 0 9 0 0 0 0 0 0 0\neth0: 500 0 0 0 0 0 0 0 700 0 0 0 0 0 0 0\n",
    "pressure/cpu": "some avg10=0.00 avg60=0.00 avg300=0.00 total=1000000\n",
}
LATER = {
    "stat": "cpu  1300 0 0 5000 0 0 0 0 0 0\n",
    "diskstats": "   8 0 sda 1 0 120 0 1 0 240 0 0 0 0\n   8 1 sda1 1 0 120 0 1 0 240 0 0 0 0\n",
    "net/dev": "a\nb\n  lo: 99 0 0 0 0 0 0 0 99 0 0 0 0 0 0 0\neth0: 700 0 0 0 0 0 0 0 1100 0 0 0 0 0 0 0\n",
    "pressure/cpu": "some avg10=0.00 avg60=0.00 avg300=0.00 total=1500000\n",
}


def write(folder: Path, files: dict[str, str]) -> Machine:
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(exist_ok=True, parents=True)
        path.write_text(content)
    return Machine(str(folder), str(folder))


def test_rates_are_since_the_reading_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr("jobmeter.cluster.machine_use.time.monotonic", lambda: now)
    use = MachineUse(write(tmp_path, FILES))
    assert {"used_memory_bytes": 600 * 1024, "load1": 1.5} == use.read()
    write(tmp_path, LATER)
    now = 102.0
    assert {
        "used_cpus": 1.5,
        "used_memory_bytes": 600 * 1024,
        "load1": 1.5,
        "disk_read_bytes_per_second": 10 * 512,
        "disk_write_bytes_per_second": 20 * 512,
        "net_received_bytes_per_second": 100,
        "net_sent_bytes_per_second": 200,
        "cpu_pressure_percent": 25.0,
    } == use.read()


def test_a_counter_that_fell_has_no_rate(tmp_path: Path) -> None:
    use = MachineUse(write(tmp_path, LATER))
    use.read()
    write(tmp_path, FILES)
    assert not {"used_cpus", "disk_read_bytes_per_second"} & use.read().keys()


def test_what_the_kernel_does_not_have_is_absent(tmp_path: Path) -> None:
    use = MachineUse(Machine(str(tmp_path), str(tmp_path)))
    use.read()
    assert {} == use.read()


def test_this_machine_has_memory_in_use() -> None:
    use = MachineUse(THIS_MACHINE)
    use.read()
    assert use.read()["used_memory_bytes"] > 0
