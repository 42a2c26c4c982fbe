"""One small adapter for each tool."""

from __future__ import annotations

import json
import os
import re
import shlex
from pathlib import Path
from typing import Any

from benchmarks.tool import PYTHON, ROOT, VENV, Reading, Tool

_HERE = ROOT / "benchmarks"
_MARKS = {"at least": "≥", "sampled": "~"}


class Jobmeter:
    """jobmeter as the user who runs the benchmarks; with root, the job gets a cgroup."""

    name = "jobmeter"
    options: tuple[str, ...] = ("--orphans", "wait")

    def __init__(self, *, report: bool = True) -> None:
        """Without `report`, it costs what a plain `jobmeter run` costs, and there is no report to read."""
        self._report = report

    def command(self, job: list[str], place: Path) -> list[str]:
        report = ["--report", str(place / "report.json")] if self._report else []
        files = [*report, "--store", str(place / "store")]
        return [PYTHON, "-m", "jobmeter", "run", "--quiet", *self.options, *files, "--", *job]

    def read(self, place: Path) -> Reading:
        record = json.loads((place / "report.json").read_text())
        usage, outcome = record["usage"], record["outcome"]
        cpu, memory, written = (usage.get(key, {}) for key in ("cpu_seconds", "memory_peak_bytes", "write_bytes"))
        return Reading(
            cpu.get("value"),
            memory.get("value"),
            written.get("value"),
            outcome["exit_code"] if outcome["signal"] is None else 128 + outcome["signal"],
            *(_MARKS.get(figure.get("quality", ""), "") for figure in (cpu, memory, written)),
        )


class JobmeterAsUser(Jobmeter):
    """jobmeter as an ordinary user, and so without a cgroup."""

    name = "jobmeter, as user"

    def command(self, job: list[str], place: Path) -> list[str]:
        return [*AS_NOBODY, *super().command(job, place)]


AS_NOBODY = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"] if os.geteuid() == 0 else []


class ConDuct:
    name = "con-duct"

    def command(self, job: list[str], place: Path) -> list[str]:
        intervals = ["--sample-interval", "1", "--report-interval", "1"]
        quiet = ["--log-level", "NONE", "--fail-time", "0"]
        return [f"{VENV}/bin/con-duct", "run", *quiet, *intervals, "-p", f"{place}/duct_", *job]

    def read(self, place: Path) -> Reading:
        summary = json.loads((place / "duct_info.json").read_text())["execution_summary"]
        percent = summary["average_pcpu"]
        # con-duct reports no CPU time: the nearest is its mean share of a core times its wall time.
        cpu = None if percent is None else percent / 100 * summary["wall_clock_time"]
        return Reading(cpu, summary["peak_rss"], None, summary["exit_code"])


class Psrecord:
    name = "psrecord"

    def command(self, job: list[str], place: Path) -> list[str]:
        options = ["--include-children", "--include-io", "--interval", "1", "--log", f"{place}/log"]
        return [f"{VENV}/bin/psrecord", shlex.join(job), *options]

    def read(self, place: Path) -> Reading:
        rows = [list(map(float, line.split())) for line in (place / "log").read_text().splitlines()[1:]]
        if not rows:
            return Reading()
        starts = [0.0, *(row[0] for row in rows)]
        cpu = sum(row[1] / 100 * (row[0] - before) for row, before in zip(rows, starts))
        return Reading(cpu, max(row[2] for row in rows) * (1 << 20), max(row[7] for row in rows))


class Mprof:
    name = "memory-profiler"

    def command(self, job: list[str], place: Path) -> list[str]:
        options = ["--include-children", "--exit-code", "--interval", "1", "--output", f"{place}/dat"]
        return [f"{VENV}/bin/mprof", "run", *options, *job]

    def read(self, place: Path) -> Reading:
        sizes = [float(line.split()[1]) for line in (place / "dat").read_text().splitlines() if line[:4] == "MEM "]
        return Reading(None, max(sizes) * (1 << 20) if sizes else None)


class Denet:
    """The PyPI package of denet is a library: drive_denet.py calls the function that its documentation shows."""

    name = "denet"

    def command(self, job: list[str], place: Path) -> list[str]:
        return [f"{VENV}/bin/python", str(_HERE / "drive_denet.py"), str(place), *job]

    def read(self, place: Path) -> Reading:
        summary: dict[str, Any] = json.loads((place / "summary.json").read_text())
        return Reading(
            summary["avg_cpu_usage"] / 100 * summary["total_time_secs"],
            summary["peak_mem_rss_kb"] * 1024,
            summary["total_disk_write_bytes"],
            summary["exit_code"],
        )


class ResourceTracker:
    """A library too: drive_resource_tracker.py starts the job and tracks its pid."""

    name = "resource-tracker"

    def command(self, job: list[str], place: Path) -> list[str]:
        return [f"{VENV}/bin/python", str(_HERE / "drive_resource_tracker.py"), str(place), *job]

    def read(self, place: Path) -> Reading:
        head, *lines = (place / "samples.csv").read_text().splitlines()
        names = [name.strip('"') for name in head.split(",")]
        rows = [dict(zip(names, line.split(","))) for line in lines]
        if not rows:
            return Reading()
        return Reading(
            sum(float(row["utime"]) + float(row["stime"]) for row in rows),
            max(float(row["memory_mib"]) for row in rows) * (1 << 20),
            sum(float(row["disk_write_bytes"]) for row in rows),
        )


class Runexec:
    """BenchExec, in cgroups and without its container, which needs an overlay of `/`."""

    name = "runexec"

    def command(self, job: list[str], place: Path) -> list[str]:
        output = ["--output", f"{place}/output"]
        shell = f'exec "$@" > {shlex.quote(f"{place}/result")}'
        runexec = [f"{VENV}/bin/runexec", "--quiet", "--no-container", *output, "--", *job]
        return ["/bin/sh", "-c", shell, "sh", *runexec]

    def read(self, place: Path) -> Reading:
        fields = dict(line.split("=", 1) for line in (place / "result").read_text().splitlines())
        signal = int(fields["exitsignal"]) + 128 if "exitsignal" in fields else None
        written = fields.get("blkio-write")
        memory = fields.get("memory")
        return Reading(
            float(fields["cputime"].rstrip("s")),
            None if memory is None else int(memory.rstrip("B")),
            None if written is None else int(written.rstrip("B")),
            signal if signal is not None else int(fields["returnvalue"]),
        )


class GnuTime:
    name = "GNU time"

    def command(self, job: list[str], place: Path) -> list[str]:
        return ["/usr/bin/time", "-f", "jobmeter %U %S %M %O %x", "-o", f"{place}/time", *job]

    def read(self, place: Path) -> Reading:
        match = re.search(r"^jobmeter (\S+) (\S+) (\d+) (\d+) (\d+)$", (place / "time").read_text(), re.MULTILINE)
        if match is None:
            raise ValueError("no whole report")
        user, system, kib, blocks, code = match.groups()
        return Reading(float(user) + float(system), int(kib) * 1024, int(blocks) * 512, int(code))


class PerfStat:
    name = "perf stat"

    def command(self, job: list[str], place: Path) -> list[str]:
        return ["perf", "stat", "-x", ",", "-e", "task-clock", "-o", f"{place}/stat", "--", *job]

    def read(self, place: Path) -> Reading:
        for line in (place / "stat").read_text().splitlines():
            if "task-clock" in line:
                return Reading(float(line.split(",")[0]) / 1000)
        raise ValueError("no whole report")


OURS: tuple[Tool, ...] = (Jobmeter(), JobmeterAsUser())
PEERS: tuple[Tool, ...] = (
    ConDuct(), Psrecord(), Mprof(), Denet(), ResourceTracker(), Runexec(), GnuTime(), PerfStat(),
)  # fmt: skip
