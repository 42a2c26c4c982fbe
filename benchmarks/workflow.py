"""`python -m benchmarks.workflow`: jobs a second compared with GNU parallel; memory and planning of 10,000 jobs."""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

from benchmarks.table import mib, print_table, seconds, times
from benchmarks.tool import ROOT

JOBS = 1000
MANY = 10_000
RATE_LIMIT = 0.5
PLAN_LIMIT = 2.0
_REPEATS = 3
_LOOK = 0.2


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="jobmeter-workflow-") as place:
        _throughput(place)
        _memory(place)
        _planning(place)
    return 0


def workflow(*arguments: str, place: str) -> subprocess.Popen[bytes]:
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}/src:{ROOT}", "JOBMETER_STORE": f"{place}/store"}
    return subprocess.Popen([sys.executable, "-m", "jobmeter", "workflow", *arguments], env=environment)


def sweep_spec(place: str, name: str, jobs: list[str]) -> str:
    path = f"{place}/{name}.yaml"
    with open(path, "w", encoding="utf-8") as file:
        file.write(f"name: {name}\njobs:\n" + "".join(f"  - {job}\n" for job in jobs))
    return path


def _throughput(place: str) -> None:
    """Compare with GNU parallel. The two take turns, so that other load on the machine affects both alike."""
    if shutil.which("parallel") is None:
        print("parallel: not installed. On Debian: apt-get install parallel")
        return
    spec = sweep_spec(place, "thousand", [f'{{name: "t_{{i}}", command: "true", parameters: {{i: "1:{JOBS}"}}}}'])
    ours, theirs = [], []
    for _ in range(_REPEATS):
        began = time.perf_counter()
        assert workflow("run", "--quiet", spec, place=place).wait() == 0
        ours.append(JOBS / (time.perf_counter() - began))
        began = time.perf_counter()
        numbers = "\n".join(map(str, range(JOBS)))
        command = ["parallel", "-j", str(os.cpu_count()), "--joblog", f"{place}/joblog", "true"]
        subprocess.run(command, input=numbers, text=True, check=True, stderr=subprocess.DEVNULL)
        theirs.append(JOBS / (time.perf_counter() - began))
    mine, other = statistics.median(ours), statistics.median(theirs)
    print_table(
        f"{JOBS:,} jobs of `true`, median of {_REPEATS}",
        ["what", "jobs a second", "to GNU parallel", "limit"],
        [
            ["jobmeter workflow run, every job metered", f"{mine:.0f}", times(mine, other), f"≥ {RATE_LIMIT:g}×"],
            ["parallel --joblog", f"{other:.0f}", "1.00×", ""],
        ],
    )


def _memory(place: str) -> None:
    half = MANY // 2
    jobs = [
        f'{{name: "a_{{i}}", command: "true", parameters: {{i: "1:{half}"}}}}',
        f'{{name: "b_{{i}}", command: "true", parameters: {{i: "1:{half - 1}"}}, blocked_by: ["a_{{i}}"]}}',
        '{name: end, command: "true", blocked_by: ["b_*"]}',
    ]
    process = workflow("run", "--quiet", sweep_spec(place, "many", jobs), place=place)
    sizes = []
    while process.poll() is None:
        sizes.append(_resident(process.pid))
        time.sleep(_LOOK)
    assert process.returncode == 0
    positive_sizes = [size for size in sizes if size]
    quarter = len(positive_sizes) // 4
    early, late = max(positive_sizes[:quarter]), max(positive_sizes[-quarter:])
    print_table(
        f"{MANY:,} jobs with dependencies",
        ["what", "measured"],
        [
            ["memory of the runner in the first quarter", mib(early)],
            ["in the last quarter", mib(late)],
            ["grown by", f"{(late - early) / MANY:.0f} bytes a job"],
        ],
    )


def _resident(pid: int) -> int:
    try:
        with open(f"/proc/{pid}/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, IndexError):
        return 0


def _planning(place: str) -> None:
    jobs = [
        {"name": f"job{n}", "command": "true", "blocked_by": [f"job{n - 1}"] if n % 10 else [], "env": {"N": str(n)}}
        for n in range(MANY)
    ]
    written = "".join(
        f'  - name: {job["name"]}\n    command: "true"\n    env: {{N: "{number}"}}\n'
        f"    blocked_by: {job['blocked_by']}\n    resource_requirements: {{cpus: 1, memory: 100m}}\n"
        for number, job in enumerate(jobs)
    )
    with open(f"{place}/written.yaml", "w", encoding="utf-8") as file:
        file.write("name: written\njobs:\n" + written)
    with open(f"{place}/written.json", "w", encoding="utf-8") as file:
        json.dump({"name": "written", "jobs": jobs}, file)
    _write_file_specs(place)
    sweep = sweep_spec(place, "sweep", [f'{{name: "t_{{i}}", command: "true", parameters: {{i: "1:{MANY}"}}}}'])
    rows = []
    for name, path in (
        ("YAML, written out", f"{place}/written.yaml"),
        ("JSON, written out", f"{place}/written.json"),
        ("YAML, a sweep", sweep),
        ("JSON, written out, by files", f"{place}/files.json"),
        ("YAML, written out, by files", f"{place}/files.yaml"),
        ("JSON5, written out, by files", f"{place}/files.json5"),
        ("TOML, written out, by files", f"{place}/files.toml"),
        ("KDL, written out, by files", f"{place}/files.kdl"),
        ("YAML, two sweeps, by files", f"{place}/sweeps.yaml"),
    ):
        took = min(_dry_run(path, place) for _ in range(_REPEATS))
        rows.append([name, seconds(took), f"{PLAN_LIMIT:g} s", times(took, PLAN_LIMIT)])
    title = f"`workflow run --dry-run` of {MANY:,} jobs, best of {_REPEATS}"
    print_table(title, ["spec", "took", "limit", "of limit"], rows)


def _write_file_specs(place: str) -> None:
    """Write specs with chains of ten jobs each, which depend on each other only by named files."""
    from jobmeter.workflow.spec.convert.conversion import write_values

    files = [{"name": f"f{n}", "path": f"f{n}.txt"} for n in range(MANY)]
    commands = [
        f"cat ${{files.input.f{n - 1}}} > ${{files.output.f{n}}}" if n % 10 else f"echo > ${{files.output.f{n}}}"
        for n in range(MANY)
    ]
    jobs = [{"name": f"job{n}", "command": command} for n, command in enumerate(commands)]
    for kind in ("JSON", "YAML", "JSON5", "TOML", "KDL"):
        with open(f"{place}/files.{kind.lower()}", "w", encoding="utf-8") as file:
            file.write(write_values({"name": "files", "files": files, "jobs": jobs}, kind, []))
    half = MANY // 2
    with open(f"{place}/sweeps.yaml", "w", encoding="utf-8") as file:
        file.write(
            f'name: sweeps\nparameters: {{i: "1:{half}"}}\nfiles:\n'
            '- {name: "a_{i}", path: "a_{i}.txt", use_parameters: i}\n'
            '- {name: "b_{i}", path: "b_{i}.txt", use_parameters: i}\njobs:\n'
            '- {name: "make_{i}", command: "echo > ${files.output.a_{i}}", use_parameters: i}\n'
            '- {name: "use_{i}", command: "cat ${files.input.a_{i}} > ${files.output.b_{i}}", use_parameters: i}\n'
        )


def _dry_run(path: str, place: str) -> float:
    began = time.perf_counter()
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}/src:{ROOT}", "JOBMETER_STORE": f"{place}/store"}
    command = [sys.executable, "-m", "jobmeter", "workflow", "run", "--dry-run", path]
    subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - began


if __name__ == "__main__":
    sys.exit(main())
