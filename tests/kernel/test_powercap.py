"""Energy counters, from trees of sysfs."""

from __future__ import annotations

from pathlib import Path

import pytest

from jobmeter.kernel.powercap import Zone, find_zones, used_microjoules
from tests.sysfs import machine


def zone_files(name: str, kind: str, energy: int, most: object = 262_143_328_850) -> dict[str, object]:
    folder = f"class/powercap/{name}"
    return {f"{folder}/name": kind, f"{folder}/energy_uj": energy, f"{folder}/max_energy_range_uj": most}


def test_every_zone_is_found_and_the_second_way_to_a_package_is_left_out(tmp_path: Path) -> None:
    files = {
        **zone_files("intel-rapl:0", "package-0", 1),
        **zone_files("intel-rapl:0:0", "core", 2),
        **zone_files("intel-rapl:0:1", "dram", 3),
        **zone_files("intel-rapl:1", "package-1-die-0", 4),
        **zone_files("intel-rapl:2", "psys", 5),
        **zone_files("intel-rapl-mmio:0", "package-0", 6),
        "class/powercap/intel-rapl/enabled": 1,
    }
    assert ["package", "core", "dram", "package", "psys"] == [
        zone.kind for zone in find_zones(machine(tmp_path, files))
    ]


def test_a_machine_without_counters_has_no_zones(tmp_path: Path) -> None:
    assert [] == find_zones(machine(tmp_path))


@pytest.mark.parametrize(("before", "now", "used"), [(10, 25, 15), (90, 5, 15), (7, 7, 0), (100, 0, 0)])
def test_a_counter_that_wrapped_around_is_followed(before: int, now: int, used: int) -> None:
    assert used == used_microjoules(before, now, Zone("", "package", 100))


def test_a_range_that_is_no_number_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="lots"):
        find_zones(machine(tmp_path, zone_files("intel-rapl:0", "package-0", 1, "lots")))
