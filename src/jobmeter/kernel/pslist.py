"""Lists the processes of a machine with the `ps` program, also without /proc.

The options are those that procps (Linux), macOS and the BSDs have in common, except for the CPU time.
"""

from __future__ import annotations

import os
import sys
from typing import NamedTuple

from jobmeter.errors import NoData

# On Linux the CPU time includes the children that were waited for: S adds them to `bsdtime` and `pcpu`, but not to
# `time`. The BSDs have -S for `time`, but macOS ignores it: elsewhere the CPU time is of the process alone.
_INHERITS = sys.platform == "linux"
_CPU_TIME = "bsdtime" if _INHERITS else "time"
_COLUMNS = ("pid", "ppid", "rss", "vsz", "pmem", "etime", _CPU_TIME, "pcpu", "stat", "command")
_OPTIONS = [*(["S"] if _INHERITS else []), "-A", "-ww", "-o", ",".join(f"{name}=" for name in _COLUMNS)]
_PATIENCE = 10.0
"""Seconds to wait for `ps`. It reads the memory of every process, and can hang with one of them."""


class PsLine(NamedTuple):
    """One process. A value that `ps` shows as `-`, as it may for a process that has ended, is None."""

    pid: int
    ppid: int
    rss: int  # bytes
    vsz: int  # bytes
    pmem: float  # percent of the machine's memory
    age: float | None  # whole seconds
    cpu: float | None  # seconds, a lower bound; see `hundredths`
    whole_cpu: int  # the CPU time that `ps` shows, rounded down to whole seconds
    hundredths: bool  # `cpu` is to 0.01 s and of the process alone, as on macOS; procps adds the children waited for
    state: str  # the first letter of the state
    command: str

    @property
    def alive(self) -> bool:
        return self.state not in "ZX"


def parse_ps(content: str) -> list[PsLine]:
    return [_parse_row(line) for line in content.splitlines() if line.strip()]


def _parse_row(line: str) -> PsLine:
    words = line.split(None, len(_COLUMNS) - 1)
    try:
        pid, ppid, rss, vsz, pmem, age_text, time, pcpu, state = words[: len(_COLUMNS) - 1]
        age, cpu, hundredths = parse_duration(age_text), parse_duration(time), "." in time
        return PsLine(
            int(pid),
            int(ppid),
            int(rss) * 1024,
            int(vsz) * 1024,
            float(pmem),
            age,
            cpu if hundredths else _refined(cpu, age, pcpu),
            int(cpu or 0),
            hundredths,
            state[0],
            words[-1].rstrip() if len(words) == len(_COLUMNS) else "",
        )
    except ValueError:
        raise ValueError(f"not a line of ps: {line!r}") from None


def _refined(cpu: float | None, age: float | None, pcpu: str) -> float | None:
    """The least CPU time that agrees with the whole seconds and the percentage that procps shows.

    The percentage is CPU time divided by age, rounded down to a tenth. The age has whole seconds before procps 4.0,
    and a fraction since. The percentage times the whole seconds that are shown is never more than the CPU time.
    """
    if cpu is None or age is None or pcpu == "-":
        return cpu
    return round(max(cpu, float(pcpu) / 100 * age), 2)


def parse_duration(text: str) -> float | None:
    """Seconds of `[[days-]hours:]minutes:seconds[.hundredths]`; None for `-`."""
    if text == "-":
        return None
    days, _, clock = text.rpartition("-")
    seconds = 0.0
    for part in clock.split(":"):
        seconds = 60 * seconds + float(part)
    return round(seconds + 86400 * int(days or 0), 2)


def read_ps() -> list[PsLine]:
    """Every process of the machine, except this `ps` itself. Raises NoData if `ps` is missing, fails or hangs."""
    import subprocess

    # The caller's settings (PS_FORMAT, COLUMNS, a locale with a decimal comma) must not change the output.
    environment = {"LC_ALL": "C", "PATH": os.environ.get("PATH") or os.defpath}
    try:
        ps = subprocess.Popen(
            ["ps", *_OPTIONS],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,  # Ctrl-C is meant for the job
        )
    except OSError as error:
        raise NoData(f"ps: {error.strerror}") from None
    with ps:
        try:
            content, complaint = ps.communicate(timeout=_PATIENCE)
        except subprocess.TimeoutExpired:
            ps.kill()
            raise NoData(f"ps: no answer within {_PATIENCE:.0f} s") from None
    if ps.returncode != 0:
        why = complaint.decode(errors="replace").strip().partition("\n")[0]
        raise NoData(f"ps: {why or f'ended with {ps.returncode}'}")
    return [row for row in parse_ps(content.decode(errors="surrogateescape")) if row.pid != ps.pid]


class ListedTree:
    """The descendants of `root`, followed over time through repeated listings of all processes.

    Without a subreaper (macOS), a process whose parent ended is not below the root any more.
    So a process that was once listed as a descendant stays a member until it ends.
    """

    def __init__(self, root: int) -> None:
        self.root: PsLine | None = None
        self.members: dict[int, PsLine] = {}
        self.births: dict[int, int] = {}
        self.vanished: list[PsLine] = []
        self._root = root
        self._born = 0

    def refresh(self) -> None:
        """Run `ps`, and update. Raises NoData if it fails."""
        self.update(read_ps())

    def running_pids(self, *, with_root: bool) -> list[int]:
        """The pids of the processes that can still run, as of the last refresh; with `with_root`, the root's too."""
        rooted = [self.root] if with_root and self.root is not None else []
        return [row.pid for row in (*rooted, *self.members.values()) if row.alive]

    def close(self) -> None:
        """Do nothing: only a `Tree`, which has the same methods, has files to close."""

    def update(self, rows: list[PsLine]) -> None:
        """Take a listing. `births` numbers the members: pids are reused. `vanished` has ended ones, as last listed."""
        present = {row.pid: row for row in rows}
        self.root = present.get(self._root)
        children: dict[int, list[int]] = {}
        for row in rows:
            children.setdefault(row.ppid, []).append(row.pid)
        alive = [pid for pid, before in self.members.items() if pid in present and _same(before, present[pid])]
        births = {pid: self.births[pid] for pid in alive}
        self.vanished = [before for pid, before in self.members.items() if pid not in births]
        self.members = {pid: present[pid] for pid in alive}
        to_visit = [self._root, *alive]
        while to_visit:
            for pid in children.get(to_visit.pop(), ()):
                if pid not in self.members and pid != self._root:
                    self.members[pid] = present[pid]
                    self._born += 1
                    births[pid] = self._born
                    to_visit.append(pid)
        self.births = births


def _same(before: PsLine, now: PsLine) -> bool:
    """Whether a pid still belongs to the same process: a younger process may have got the pid."""
    return before.age is None or now.age is None or now.age >= before.age
