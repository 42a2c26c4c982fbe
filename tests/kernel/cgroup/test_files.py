from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from jobmeter.kernel.cgroup import files
from jobmeter.kernel.cgroup.files import Directory


def test_a_table_is_lines_of_name_and_number() -> None:
    content = "oom_kill_disable 0\nunder_oom 0\noom_kill 3\n"
    assert {"oom_kill_disable": 0, "under_oom": 0, "oom_kill": 3} == files.parse_table(content)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("8:0 Read 4096\n8:0 Write 512\n8:0 Sync 9\n8:0 Total 4608\n254:0 Read 1000\nTotal 5608\n", (5096, 512)),
        ("Total 0\n", (0, 0)),
        ("", (0, 0)),
    ],
)
def test_blkio_adds_up_devices_and_no_totals(content: str, expected: tuple[int, int]) -> None:
    assert expected == files.parse_blkio(content)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("8:0 rbytes=90112 wbytes=4096 rios=4 wios=1 dbytes=7 dios=1\n253:0 rbytes=8 wbytes=2 rios=1\n", (90120, 4098)),
        ("8:16\n", (0, 0)),
        ("", (0, 0)),
    ],
)  # fmt: skip
def test_io_stat_adds_up_devices(content: str, expected: tuple[int, int]) -> None:
    assert expected == files.parse_io_stat(content)


SOME = "some avg10=0.00 avg60=1.50 avg300=0.40 total=2500000\n"
FULL = "full avg10=0.00 avg60=0.00 avg300=0.00 total=100\n"


@pytest.mark.parametrize(("content", "expected"), [(SOME + FULL, 2.5), (SOME, 2.5), (FULL, None), ("", None)])
def test_pressure_is_the_seconds_in_which_some_waited(content: str, expected: float | None) -> None:
    assert expected == files.parse_pressure(content)


@pytest.mark.parametrize(
    ("parse", "line"),
    [
        (files.parse_table, "file much"),
        (files.parse_blkio, "8:0 Read some"),
        (files.parse_io_stat, "8:0 rbytes="),
        (files.parse_pressure, "some avg10=0.00 total=soon"),
    ],
)
def test_a_malformed_line_is_quoted(parse: Callable[[str], object], line: str) -> None:
    with pytest.raises(ValueError, match="no number in") as refused:
        parse(f"{line}\n")
    assert repr(line) in str(refused.value)


def test_a_file_is_read_anew_each_time(tmp_path: Path) -> None:
    directory = Directory(str(tmp_path))
    (tmp_path / "memory.current").write_text("1\n")
    first = directory.number("memory.current")
    (tmp_path / "memory.current").write_text("2\n")
    assert (1, 2) == (first, directory.number("memory.current"))
    directory.close()


def test_a_file_that_is_not_there_is_unknown_and_not_zero(tmp_path: Path) -> None:
    directory = Directory(str(tmp_path))
    assert (None, None, None) == (directory.text("x"), directory.number("x"), directory.table("x"))


def test_no_limit_is_no_number(tmp_path: Path) -> None:
    (tmp_path / "memory.max").write_text("max\n")
    directory = Directory(str(tmp_path))
    assert None is directory.number("memory.max")
    directory.close()


@pytest.mark.parametrize("devices", [1, 256, 512, 700])
def test_a_file_with_hundreds_of_devices_is_read_to_its_end(tmp_path: Path, devices: int) -> None:
    line = "{:03d}:0 rbytes=4096 wbytes=1 rios=1 wios=1 dbytes=0 dios=0 {}\n"
    # Lines of 64 bytes, so that 256 of them are exactly what one call reads.
    content = "".join(line.format(n, "x" * (63 - len(line.format(n, "")) + 1)) for n in range(devices))
    (tmp_path / "io.stat").write_text(content)
    directory = Directory(str(tmp_path))
    text = directory.text("io.stat")
    directory.close()
    assert 64 * devices == len(content)
    assert text is not None
    assert (4096 * devices, devices) == files.parse_io_stat(text)


def test_closing_lets_go_of_every_descriptor(tmp_path: Path) -> None:
    (tmp_path / "cpu.stat").write_text("usage_usec 1\n")
    before = len(os.listdir("/dev/fd"))
    directory = Directory(str(tmp_path))
    directory.table("cpu.stat")
    while_open = len(os.listdir("/dev/fd"))
    directory.close()
    assert (before + 1, before) == (while_open, len(os.listdir("/dev/fd")))


def test_the_processes_of_a_group_are_its_lines(tmp_path: Path) -> None:
    (tmp_path / "cgroup.procs").write_text("17\n4711\n")
    assert [17, 4711] == files.read_pids(str(tmp_path))


def test_moving_a_process_writes_its_pid_to_the_destination(tmp_path: Path) -> None:
    (tmp_path / "cgroup.procs").write_text("")
    files.move(4711, str(tmp_path))
    assert "4711" == (tmp_path / "cgroup.procs").read_text()


def test_huge_pages_of_all_sizes_are_added_and_reservations_are_not(tmp_path: Path) -> None:
    for name, value in (("2MB.current", 6), ("1GB.current", 4), ("2MB.rsvd.current", 100), ("2MB.max", 50)):
        (tmp_path / f"hugetlb.{name}").write_text(f"{value}\n")
    directory = Directory(str(tmp_path))
    assert [10, 10, None] == [
        directory.sum_of_sizes("hugetlb.", suffix) for suffix in (".current", ".current", ".usage_in_bytes")
    ]
    directory.close()
