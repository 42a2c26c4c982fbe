from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from jobmeter.collectors import ps
from jobmeter.collectors.contract import Moment, Target
from jobmeter.collectors.rate import CpuPercent
from jobmeter.errors import NoData
from jobmeter.kernel.pslist import ListedTree, PsLine, parse_duration, parse_ps, read_ps
from tests.collectors.metering import BURN, BURN_FOR, MIB, children, meter_python

PROCPS = """\
      1       0  17104  44660  0.1    01:02:03   0:07  0.1 SLl  /sbin/init splash
    812       1  30212 160000  0.7  2-03:04:05 1440:01 45.0 R+   python3 -c import time; time.sleep(1)
   2739     812   3021  16000  0.0       00:03   0:02 98.9 R    sh -c make
   2740     812      0      0  0.0       00:00   0:00  0.0 Z    [python3] <defunct>
"""

MACOS = """\
    1     0  12640 34213380   0.1 12-07:15:47  75:53.64   3.1 Ss   /sbin/launchd
  501     1   3804 33654620   0.0    01:32:10   0:00.02   0.0 S    /usr/libexec/UserEventAgent (Aqua)
 7301   501 102400 34150000   0.6       00:05   0:04.98  99.9 R+   /opt/homebrew/bin/python3 -c x = 1
 7302   501      0        0   0.0           -   0:00.00   0.0 Z    <defunct>
 7303   501    800    33000   0.0       00:01   0:00.01   0.0 U
"""


def test_procps_output_is_read_in_base_units() -> None:
    init, python, shell, ended = parse_ps(PROCPS)
    assert init == PsLine(1, 0, 17104 * 1024, 44660 * 1024, 0.1, 3723.0, 7.0, 7, False, "S", "/sbin/init splash")
    assert (python.age, python.cpu) == (2 * 86400 + 3 * 3600 + 245, 86401.0)
    assert python.command == "python3 -c import time; time.sleep(1)"
    assert (shell.cpu, shell.whole_cpu) == (2.97, 2)  # its percent of three seconds says more than its whole seconds
    assert not ended.alive


def test_macos_output_is_read_with_its_hundredths() -> None:
    launchd, agent, python, ended, nameless = parse_ps(MACOS)
    assert (launchd.cpu, launchd.hundredths) == (75 * 60 + 53.64, True)
    assert (agent.cpu, agent.age) == (0.02, 5530.0)
    # Its percent decays with time, and is not over the whole life.
    assert (python.rss, python.state, python.cpu) == (100 * MIB, "R", 4.98)
    assert ended.age is None
    assert nameless.command == ""


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("00:00", 0),
        ("01:05", 65),
        ("10:00:00", 36000),
        ("1-00:00:00", 86400),
        ("0:00.02", 0.02),
        ("200:00.50", 12000.5),
    ],
)
def test_durations_are_read_in_every_form(text: str, seconds: float) -> None:
    assert parse_duration(text) == seconds


def test_a_line_that_is_none_of_ps_is_quoted() -> None:
    with pytest.raises(ValueError, match="USER PID"):
        parse_ps("USER PID %CPU\n")


def test_ps_does_not_list_itself() -> None:
    mine = [row for row in read_ps() if row.ppid == os.getpid()]
    assert not [row for row in mine if row.command.startswith("ps ")]


def test_without_a_ps_program_there_is_no_data(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(NoData, match="ps: No such file"):
        ps.PsCollector().check(Target(1, 1).machine)


def test_a_ps_that_does_not_know_the_options_is_no_data(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    program = os.path.join(tmp_path, "ps")
    with open(program, "w", encoding="utf-8") as file:
        file.write("#!/bin/sh\necho 'ps: unrecognized option: A' >&2\nexit 1\n")
    os.chmod(program, 0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    with pytest.raises(NoData, match="unrecognized option: A"):
        ps.PsCollector().check(Target(1, 1).machine)


def row(pid: int, ppid: int, age: float = 10.0, cpu: float = 0.0) -> PsLine:
    return PsLine(pid, ppid, 0, 0, 0.0, age, cpu, int(cpu), False, "S", "x")


def test_the_tree_is_all_that_descends_from_the_root_and_not_the_root() -> None:
    tree = ListedTree(10)
    tree.update([row(1, 0), row(10, 1), row(11, 10), row(12, 11), row(99, 1)])
    assert set(tree.members) == {11, 12}


def test_a_process_whose_parent_died_stays_in_the_tree_with_its_children() -> None:
    tree = ListedTree(10)
    tree.update([row(10, 1), row(11, 10), row(12, 11)])
    tree.update([row(10, 1), row(12, 1), row(13, 12)])
    assert set(tree.members) == {12, 13}


def test_a_younger_process_under_an_old_pid_is_another_one() -> None:
    tree = ListedTree(10)
    tree.update([row(10, 1), row(11, 10, age=100)])
    first = tree.births[11]
    tree.update([row(10, 1), row(11, 10, age=1)])
    assert tree.births[11] != first
    tree.update([row(10, 1), row(11, 1, age=0)])
    assert not tree.members


class Listing:
    """A `ps` program that prints what the test says, and a source that follows process 10 with it."""

    def __init__(self, folder: Path) -> None:
        self._output = folder / "listing"
        (folder / "ps").write_text(f"#!/bin/sh\ncat {self._output}\n")
        (folder / "ps").chmod(0o755)
        self.source: ps.PsSource

    def begin(self, *lines: str, attached: bool = False) -> None:
        self.show(*lines)
        self.source = ps.PsCollector().open(Target(10, 11, root_is_job=attached), frozenset())

    def show(self, *lines: str) -> None:
        self._output.write_text("".join(f"{line}\n" for line in lines))

    def cpu(self, *lines: str) -> float:
        self.show(*lines)
        return float(self.source.read(Moment(time.monotonic()))["ps_cpu_seconds"])  # type: ignore[arg-type]


@pytest.fixture
def listing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Listing:
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    return Listing(tmp_path)


def line(pid: int, ppid: int, cpu: str, age: str = "01:00", pcpu: float = 0.0, state: str = "S") -> str:
    return f"{pid} {ppid} 100 1000 0.1 {age} {cpu} {pcpu} {state} command"


def test_what_a_parent_waited_for_counts_once(listing: Listing) -> None:
    listing.begin(line(10, 1, "0:00"), line(11, 10, "0:00"))
    assert 3.0 == listing.cpu(line(10, 1, "0:00"), line(11, 10, "0:01"), line(12, 11, "0:02"))
    assert 4.0 == listing.cpu(line(10, 1, "0:00"), line(11, 10, "0:04"))
    assert 4.0 == listing.cpu(line(10, 1, "0:04"))


def test_what_nobody_waited_for_is_kept_as_last_seen(listing: Listing) -> None:
    listing.begin(line(10, 1, "0:00"), line(11, 10, "0:00"))
    assert 3.0 == listing.cpu(line(10, 1, "0:00"), line(11, 10, "0:01"), line(12, 11, "0:02"))
    assert 3.0 == listing.cpu(line(10, 1, "0:00"), line(11, 10, "0:01"))
    assert 4.0 == listing.cpu(line(10, 1, "0:00"), line(11, 10, "0:02"))


def test_where_parents_inherit_nothing_who_ended_keeps_what_it_used(listing: Listing) -> None:
    listing.begin(line(10, 1, "0:00.00"), line(11, 10, "0:00.00"))
    assert 0.75 == listing.cpu(line(10, 1, "0:00.00"), line(11, 10, "0:00.50"), line(12, 11, "0:00.25"))
    assert 1.75 == listing.cpu(line(10, 1, "0:09.00"), line(11, 10, "0:01.50"))
    assert 1.75 == listing.cpu(line(10, 1, "0:09.00"))


def test_what_was_used_before_the_meter_came_is_not_counted(listing: Listing) -> None:
    listing.begin(line(10, 1, "1:00"), line(11, 10, "2:00"), attached=True)
    assert 3.0 == listing.cpu(line(10, 1, "1:01"), line(11, 10, "2:02"))


def test_a_time_that_falls_or_is_not_shown_changes_nothing(listing: Listing) -> None:
    listing.begin(line(10, 1, "0:00"), line(11, 10, "0:00"))
    assert 5.0 == listing.cpu(line(10, 1, "0:00"), line(11, 10, "0:05"))
    assert 5.0 == listing.cpu(line(10, 1, "0:00"), line(11, 10, "0:00", state="Z"))
    assert 5.0 == listing.cpu(line(10, 1, "0:00"), line(11, 10, "-", state="Z"))


def test_zero_usage_is_not_reported_while_a_process_is_too_young_to_measure(listing: Listing) -> None:
    young = [line(10, 1, "0:00"), line(11, 10, "0:00"), line(12, 11, "0:00", age="00:00", state="R")]
    listing.begin(*young)
    listing.source._rate = CpuPercent(time.monotonic() - 60)  # a span that is long enough
    assert "ps_pdcpu" not in listing.source.read(Moment(time.monotonic()))
    listing.show(*young[:2])
    assert "ps_pdcpu" not in listing.source.read(Moment(time.monotonic()))
    assert 0.0 == listing.source.read(Moment(time.monotonic(), quiet=True))["ps_pdcpu"]


BURNERS = """\
import resource, subprocess, sys, time
body = "import time\\nwhile time.process_time() < %s: pass"
def burner(seconds): return subprocess.Popen([sys.executable, "-I", "-S", "-c", body % seconds])
began = time.monotonic()
{}
used = sum(u.ru_utime + u.ru_stime for u in map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)))
open({!r}, "w").write(f"{{used}} {{time.monotonic() - began}}")
"""


# A rate is known after four seconds, however fast the machine is.
@pytest.mark.parametrize(
    "load",
    [
        pytest.param("burner(7).wait()", id="one"),
        pytest.param("for _ in range(6): burner(1.1).wait()", id="in turn"),
        pytest.param("for _ in range(70): burner(0.1).wait()", id="many short ones"),
        pytest.param("for child in [burner(5) for _ in range(3)]: child.wait()", id="in parallel"),
    ],
)
def test_cpu_of_children_is_known_to_the_second_and_as_a_rate_to_a_quarter(tmp_path: Path, load: str) -> None:
    done = meter_python(BURNERS.format(load, f"{tmp_path}/truth"), ["ps_*"])
    used, wall = map(float, (tmp_path / "truth").read_text().split())
    # What the interpreter takes to end comes after its own account.
    assert used - 1 <= done.total("ps_cpu_seconds") <= used + 0.1
    assert done.peak("ps_pdcpu") >= 0.6 * 100 * used / wall
    assert done.peak("ps_pdcpu") <= 100 * (os.cpu_count() or 1)


def test_cpu_of_a_child_is_known_to_the_second() -> None:
    done = meter_python(children("burn(1.5); time.sleep(1.2)", 1), ["ps_*"], interval=0.5)
    assert 0.5 <= done.total("ps_cpu_seconds") <= 2.5


def test_memory_of_a_tree_is_summed() -> None:
    done = meter_python(children(f"held = b'x' * {100 * MIB}; time.sleep(1)", 2), ["ps_*"], interval=0.2)
    assert 200 * MIB <= done.peak("ps_rss_total") <= 300 * MIB
    assert 100 * MIB <= done.peak("ps_rss") <= 150 * MIB
    assert done.peak("ps_vsz_total") >= done.peak("ps_rss_total")
    assert done.peak("ps_pmem_total") >= done.peak("ps_pmem")


def test_a_process_that_slept_and_then_burns_reads_as_busy(tmp_path: Path) -> None:
    done = meter_python(BURN_FOR + f"time.sleep(4); burn_for(6, '{tmp_path}/rate')", ["ps_*"])
    rate = float((tmp_path / "rate").read_text())
    # Whole seconds over four of them: right to within a quarter.
    assert rate - 30 <= done.peak("ps_pdcpu") <= 130
    assert sum(done.record["measurements"]["ps_stat"]["share"].values()) == pytest.approx(1, abs=0.01)
    assert done.record["measurements"]["ps_cmd"]["last"].startswith(sys.executable)
    assert done.peak("ps_etime") >= 9


def test_something_already_running_is_counted_from_when_the_meter_came() -> None:
    program = BURN + "burn(1.2); print(flush=True); time.sleep(60)"
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) as running:
        assert running.stdout is not None
        running.stdout.readline()
        target = Target(root=running.pid, main=running.pid, root_is_job=True)
        source = ps.PsCollector().open(target, frozenset())
        readings = source.read(Moment(time.monotonic()))
        running.kill()
    assert readings["ps_cpu_seconds"] < 0.6  # type: ignore[operator]
    assert len(list(readings["ps_rss"])) == 1  # type: ignore[arg-type]


def test_a_job_measured_from_inside_does_not_count_the_ps_that_measures_it() -> None:
    source = ps.PsCollector().open(Target(root=os.getpid(), main=os.getpid(), root_is_job=True), frozenset())
    commands = source.read(Moment(time.monotonic()))["ps_cmd"]
    assert not [command for command in list(commands) if str(command).startswith("ps ")]  # type: ignore[arg-type]


def test_a_process_that_is_not_there_is_no_data() -> None:
    with pytest.raises(NoData, match="no process 4194305"):
        ps.PsCollector().open(Target(root=4194305, main=4194305, root_is_job=True), frozenset())
