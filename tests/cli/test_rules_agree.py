"""Over-use and waste are one rule each: every command comes to the same verdict, at and around every boundary."""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Iterator
from math import inf, nextafter
from pathlib import Path
from typing import Any

import pytest

from jobmeter.analyse.overuse import judge, overuses
from jobmeter.analyse.resource import CPU, GPU, MEMORY, RESOURCES
from jobmeter.analyse.stored_run import of_record
from jobmeter.analyse.waste import wasted_requests
from jobmeter.cli.workflow.run_messages import request_lines
from jobmeter.report.run import summary_lines
from jobmeter.store.query.overuse import judged_rows, may_be_over
from jobmeter.workflow.attempts import of_record as attempt_of
from jobmeter.workflow.plan import Monitor, Plan
from tests.cli.listing import Commands
from tests.runs import keep, record
from tests.store.kept import opened

GIB, MIB = 2**30, 2**20
QUALITIES = ("exact", "sampled", "at least", "shared", "estimated")
Case = tuple[str, dict[str, Any]]


def around(value: float) -> tuple[float, float, float]:
    """The numbers just below, at and just above a boundary."""
    return nextafter(value, -inf), value, nextafter(value, inf)


def memory_cases() -> Iterator[Case]:
    for requested, edges in (
        (4 * GIB, (4 * GIB, 4.04 * GIB, 3.2 * GIB, 2 * GIB, MIB)),
        (512 * MIB, (200 * MIB, 256 * MIB)),  # with room and rounded up, 256 MiB less would be enough, and then not
    ):
        for edge, quality, status in itertools.product(edges, QUALITIES, ("completed", "oom")):
            for peak in {round(edge) + step for step in (-1, 0, 1)}:
                yield status, {"requirement": {"memory_bytes": requested}, "memory_peak_bytes": peak,
                               "quality": quality, "wall_seconds": 60.0}  # fmt: skip


def runtime_cases() -> Iterator[Case]:
    for edge, status in itertools.product((60.0, 60.6, 6.0), ("completed", "timeout", "failed")):
        for wall in around(edge):
            yield status, {"requirement": {"runtime_seconds": 60.0}, "wall_seconds": wall}


def cpu_cases() -> Iterator[Case]:
    for cpus, wall, enforced in itertools.product((0.5, 1.0, 2.0, 8.0), (0.9, 1.0, 9.9, 10.0, 600.0), (False, True)):
        limit = 100 * cpus
        peaks = (limit, 1.01 * limit, 1.1 * limit + 5 * max(round(cpus), 1), limit / 2)
        means = (limit, 1.02 * limit, limit + 10 / wall)
        figures = [(peak, 0.3 * peak) for edge in peaks for peak in around(edge)]
        figures += [(max(mean, limit), mean) for edge in means for mean in around(edge)]
        for peak, mean in figures:
            yield "completed", {"requirement": {"cpus": cpus}, "wall_seconds": wall, "enforced": enforced,
                                "cpu_peak_percent": peak, "cpu_mean_percent": mean}  # fmt: skip
        # As imported from a tool that knows the mean alone.
        yield "completed", {"requirement": {"cpus": cpus}, "wall_seconds": wall, "cpu_mean_percent": 3 * limit}


def gpu_cases() -> Iterator[Case]:
    for used, quality, wall in itertools.product(range(6), ("sampled", "at least"), (9.9, 10.0, 60.0)):
        yield "completed", {"requirement": {"gpus": 4}, "gpus_peak": used, "quality": quality, "wall_seconds": wall}


def limited(run: Any, limits: list[str]) -> Any:
    """As `run` writes it: before what was measured."""
    return {"schema": run["schema"], "enforced": limits, **run}


def runs() -> list[Any]:
    """One run of a job of its own for each case."""
    made = []
    for number, (status, about) in enumerate((*memory_cases(), *runtime_cases(), *cpu_cases(), *gpu_cases()), 1):
        figures = dict(about)
        quality, enforced = figures.pop("quality", "exact"), figures.pop("enforced", False)
        run = record(f"r{number:04d}", f"job{number:04d}", status, **figures)
        for figure in run["usage"].values():
            figure["quality"] = quality
        made.append(limited(run, ["cpus"]) if enforced else run)
    return made


def resources_of(lines: Iterator[str] | list[str], words: dict[str, str]) -> set[str]:
    """The resources that these lines speak of; `words` name each of them."""
    return {key for line in lines for word, key in words.items() if word in line}


OVER = {
    "Memory ": "memory",
    "out of memory with": "memory",
    "CPU ": "cpus",
    "GPU ": "gpus",
    "Runtime ": "runtime",
    "timeout": "runtime",
}
SHOW_OVER = {"more memory": "memory", "Request more": "memory", "more CPU": "cpus", "more time": "runtime",
             "was stopped at": "runtime", "more GPUs": "gpus"}  # fmt: skip
SHOW_UNDER = {"of the memory it requested": "memory", "of the CPU it requested": "cpus",
              "of the GPUs it requested": "gpus"}  # fmt: skip
UNDER = {"GiB-h": "memory", "core-h": "cpus", "GPU-h": "gpus"}

Verdicts = dict[str, tuple[set[str], set[str]]]
"""By job, the resources that were over-used and those that were wasted."""


def by_check(jobmeter: Commands) -> Verdicts:
    report = json.loads(jobmeter("check", "--json", "--exit-zero", "--name", "job*").out)
    verdicts: Verdicts = {run["name"]: (set(), set()) for run in json.loads(jobmeter("ls", "--json").out)}
    keys = {resource.name: resource.key for resource in RESOURCES}
    for line in report["violations"]:
        verdicts[line["job_name"]][0].add(keys[line["resource_type"]])
    for line in report["opportunities"]:
        verdicts[line["job_name"]][1].add(keys[line["resource_type"]])
    return verdicts


def by_show(jobmeter: Commands, run: Any) -> tuple[set[str], set[str]]:
    lines = jobmeter("show", run["id"]).out.splitlines()
    over = resources_of([line for line in lines if line.startswith("! ")], SHOW_OVER)
    return over, resources_of([line for line in lines if line.startswith("- ")], SHOW_UNDER)


def by_lines(lines: list[str]) -> tuple[set[str], set[str]]:
    """As the summaries of a run and of a workflow have it."""
    over = resources_of([line for line in lines if line.startswith("  too little ")], OVER)
    return over, resources_of([line for line in lines if line.startswith("  too much ")], UNDER)


def by_workflow(run: Any) -> tuple[set[str], set[str]]:
    part = {"id": "w", "run_id": 1, "job_id": 1, "step": run["name"], "attempt": 1, "fingerprint": "f"}
    record: Any = {**run, "workflow": part}
    attempts = [attempt_of(record)]
    plan = Plan("w", "", "", "/spec.yaml", Monitor(), False, [])
    return by_lines(request_lines(plan, attempts))


@pytest.fixture
def stored(jobmeter: Commands) -> list[Any]:
    made = runs()
    keep(str(jobmeter.folder), *made)
    return made


def test_check_show_and_both_summaries_come_to_one_verdict(jobmeter: Commands, stored: list[Any]) -> None:
    verdicts = by_check(jobmeter)
    assert {"memory", "cpus", "runtime", "gpus"} == {key for over, _ in verdicts.values() for key in over}
    assert {"memory", "cpus", "gpus"} == {key for _, under in verdicts.values() for key in under}
    for run in stored:
        expected = verdicts[run["name"]]
        assert expected == by_lines(summary_lines(run, None)), run
        assert expected == by_workflow(run), run
    # `show` takes the same way from the record to the rule as the summary: a run of each sort will do.
    sorts = {(str(verdicts[run["name"]]), run["outcome"]["status"], *run["requirement"]): run for run in stored}
    for run in (*sorts.values(), *stored[::25]):
        assert verdicts[run["name"]] == by_show(jobmeter, run), run


def test_size_advises_more_of_what_was_over_used_and_less_of_what_was_wasted(
    jobmeter: Commands, stored: list[Any]
) -> None:
    verdicts = by_check(jobmeter)
    advice = {job["job_name"]: job for job in json.loads(jobmeter("size", "job*", "--format", "json").out)["jobs"]}
    fields = {resource.key: resource.field for resource in RESOURCES}
    for run in stored:
        over, under = verdicts[run["name"]]
        for key, sign in (*((key, 1) for key in over), *((key, -1) for key in under)):
            amount = advice[run["name"]].get(fields[key])
            if amount is None:
                # A job that never completed has advice only on the limit that it met.
                assert "completed" != run["outcome"]["status"], run
                continue
            assert 0 < sign * (amount["ask"] - run["requirement"][fields[key]]), (run, amount)
        if "cpus" in run["requirement"] and "cpu_peak_percent" in run["usage"] and "cpus" not in over:
            assert advice[run["name"]]["cpus"]["ask"] <= run["requirement"]["cpus"], run


def random_run(rng: random.Random, number: int) -> Any:
    """A run whose figures are near to what it requested, as often as not."""
    near = (0.3, 0.5, 0.79, 0.8, 0.999, 1.0, 1.001, 1.01, 1.02, 1.021, 1.1, 1.15, 1.151, 2.0)
    requirement: dict[str, float] = {}
    figures: dict[str, Any] = {}
    if rng.random() < 0.8:
        requirement["memory_bytes"] = rng.choice((GIB, rng.randrange(1, 1 << 40)))
        figures["memory_peak_bytes"] = round(requirement["memory_bytes"] * rng.choice((*near, rng.uniform(0, 3))))
    if rng.random() < 0.8:
        requirement["cpus"] = rng.choice((0.1, 0.5, 1.0, 2.5, 8.0, rng.uniform(0.01, 200)))
        if rng.random() < 0.9:
            figures["cpu_mean_percent"] = 100 * requirement["cpus"] * rng.choice((*near, rng.uniform(0, 3)))
        if rng.random() < 0.9:
            figures["cpu_peak_percent"] = 100 * requirement["cpus"] * rng.choice((*near, rng.uniform(0, 3)))
    if rng.random() < 0.8:
        requirement["runtime_seconds"] = rng.choice((60.0, rng.uniform(0.1, 1e6)))
    if rng.random() < 0.95:
        figures["wall_seconds"] = requirement.get("runtime_seconds", 60.0) * rng.choice((*near, rng.uniform(0, 3)))
    if rng.random() < 0.3:
        requirement["gpus"], figures["gpus_peak"] = rng.randint(1, 8), rng.randint(0, 10)
    status = rng.choice(("completed", "completed", "failed", "oom", "timeout", "killed", "detached", "lost"))
    run = record(f"r{number:05d}", "job", status, requirement=requirement, **figures)
    for figure in run["usage"].values():
        figure["quality"] = rng.choice(QUALITIES)
    return limited(run, rng.sample(("cpus", "memory"), rng.randint(1, 2))) if rng.random() < 0.1 else run


def test_sql_selects_every_run_that_the_rule_finds(tmp_path: Path) -> None:
    rng = random.Random(20)
    made = [random_run(rng, number) for number in range(5000)] + runs()
    for number, run in enumerate(made):
        run["id"] = f"r{number:05d}"
    keep(str(tmp_path), *made)
    selected = {row["id"] for row in judged_rows(opened(tmp_path), may_be_over())}
    verdicts = {run["id"]: [judge(of_record(run), resource, 0.0) for resource in RESOURCES] for run in made}
    over = {run_id for run_id, of_run in verdicts.items() if any(verdict and verdict.is_over for verdict in of_run)}
    assert 1000 < len(over) < len(made) - 1000
    assert set() == over - selected
    assert len(made) > len(selected)


def test_a_record_and_its_row_in_the_store_are_judged_alike(tmp_path: Path) -> None:
    rng = random.Random(22)
    made = [random_run(rng, number) for number in range(500)]
    keep(str(tmp_path), *made)
    rows = {row["id"]: row for row in opened(tmp_path).runs()}
    for run in made:
        assert overuses(rows[run["id"]]) == overuses(of_record(run))
        assert wasted_requests([rows[run["id"]]]) == wasted_requests([of_record(run)])
    assert {MEMORY, CPU, GPU} == {waste.resource for run in made for waste in wasted_requests([of_record(run)])}
