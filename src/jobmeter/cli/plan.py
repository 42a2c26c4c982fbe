"""`jobmeter plan`: forecasts what a workflow will use, from the history of its jobs, and whether it fits a budget."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from jobmeter.cli.shared.options import Parser, add_store_option, option_type, refuse_given
from jobmeter.cli.shared.output import print_json, warn
from jobmeter.errors import UsageError
from jobmeter.settings import (
    cpu_number,
    positive_bytes,
    positive_number,
    positive_seconds,
    positive_whole_number,
    resolve,
    whole_number,
)

if TYPE_CHECKING:
    from jobmeter.cli.plan_output import Planned
    from jobmeter.workflow.budget import UsageForecast
    from jobmeter.workflow.expected_usage import Expected
    from jobmeter.workflow.plan import Job, Plan
    from jobmeter.workflow.simulation import Cluster

_NODE_OPTIONS = ("nodes", "cpus-per-node", "memory-per-node", "gpus-per-node")
_MOST_NAMED = 5
"""The most jobs that an error names."""


def main(arguments: list[str]) -> int:
    options = _parse(arguments)
    from jobmeter.cli.plan_output import Planned, plan_object
    from jobmeter.workflow.budget import forecast_usage, longest_chain
    from jobmeter.workflow.plan import check_fit, load_plan
    from jobmeter.workflow.trials import with_trials

    plan = load_plan(options.spec)
    jobs = with_trials(plan.jobs, options.trials) if options.trials is not None else plan.jobs
    cluster = _cluster(options)
    check_fit(jobs, cluster.capacity())
    expected, runs = _expected(plan, jobs, options)
    forecast = forecast_usage(jobs, cluster, expected)
    chain, seconds = longest_chain(jobs, expected)
    planned = Planned(plan.name, jobs, expected, runs, forecast, chain, seconds, _bounds(options))
    if options.deadline is not None:
        planned = planned._replace(deadline=options.deadline, smallest=_smallest(planned, options.deadline))
    if options.json:
        print_json(plan_object(planned))
    else:
        _print(planned)
    return 0 if planned.fits else 1


def _cluster(options: argparse.Namespace) -> Cluster:
    """The machine or cluster that is planned for."""
    from jobmeter.engines import DEFAULT, load_engine
    from jobmeter.workflow.simulation import Cluster

    per_node = (options.cpus_per_node, options.memory_per_node, options.gpus_per_node)
    if options.engine is not None:
        refuse_given(options, _NODE_OPTIONS, "an engine has nodes of its own. Leave out --engine.")
        engine = load_engine(options.engine)
        if engine.capabilities.has_queue:
            raise UsageError(
                f"--engine {options.engine}: jobs wait in its queue, and what its machines have is not known here. "
                "Describe them instead: --nodes N --cpus-per-node N --memory-per-node SIZE"
            )
        engine.check()
        return Cluster(1, engine.capacity())
    machine = load_engine(DEFAULT).capacity()
    return Cluster(options.nodes or 1, machine.bounded(*per_node))


def _expected(plan: Plan, jobs: list[Job], options: argparse.Namespace) -> tuple[dict[int, Expected], dict[str, int]]:
    """The expected usage of each job, and for each step the number of its stored runs."""
    from jobmeter.model import workflow_id
    from jobmeter.store import open_store
    from jobmeter.store.query.history import workflow_histories
    from jobmeter.workflow.expected_usage import expected_usage

    store = open_store(resolve("store", options.store), warn)
    steps = {job.step for job in jobs}
    rows = {history.name: history.rows for history in workflow_histories(store, workflow_id(plan.name), steps)}
    expected = expected_usage(jobs, rows, options.assume)
    unknown = [job.name for job in jobs if job.number not in expected]
    if unknown:
        more = f" and {len(unknown) - _MOST_NAMED:,} more" if len(unknown) > _MOST_NAMED else ""
        raise UsageError(
            f"{plan.path}: no job of this workflow has completed yet, and these request no runtime: "
            f"{', '.join(unknown[:_MOST_NAMED])}{more}. Run it once, or say what to assume: --assume 10m"
        )
    return expected, {step: len(runs) for step, runs in rows.items()}


def _bounds(options: argparse.Namespace) -> dict[str, float]:
    """The budget: figure → the most that it may be."""
    bounds = {
        "wall_seconds": options.max_wall,
        "core_hours": options.max_core_hours,
        "memory_peak_bytes": options.max_memory,
    }
    return {name: bound for name, bound in bounds.items() if bound is not None}


def _smallest(planned: Planned, deadline: float) -> UsageForecast | None:
    from jobmeter.workflow.budget import smallest_cluster

    return smallest_cluster(planned.jobs, planned.forecast.cluster, planned.expected, deadline)


def _print(planned: Planned) -> None:
    from jobmeter.cli import plan_output as report
    from jobmeter.cli.shared.sentences import print_sentences
    from jobmeter.cli.shared.tables import print_table

    print_sentences([report.heading(planned)])
    print_table(report.figure_columns(planned), report.figure_rows(planned))
    print_sentences([""])
    print_table(report.STEP_COLUMNS, report.step_rows(planned))
    print_sentences(["", *report.sentences(planned)])


def _parse(arguments: list[str]) -> argparse.Namespace:
    parser = Parser(
        "plan",
        "Forecast the time, core-hours, memory and concurrency of a workflow from the stored runs of its jobs, by "
        "simulating the scheduler. Exit code 1 when that does not fit the budget.",
    )
    add: Any = parser.add_argument
    add("spec", metavar="SPEC", help="a file in YAML, JSON, JSON5, TOML or KDL")
    add("--engine", metavar="NAME", help="plan for what this engine has now (default: nodes like this machine)")
    nodes = option_type("--nodes", positive_whole_number)
    add("--nodes", metavar="N", type=nodes, help="nodes of the cluster (default 1)")
    cpus = option_type("--cpus-per-node", cpu_number)
    add("--cpus-per-node", metavar="N", type=cpus, help="CPUs of a node (default: as this machine)")
    memory = option_type("--memory-per-node", positive_bytes)
    add("--memory-per-node", metavar="SIZE", type=memory, help="memory of a node (default: as this machine)")
    gpus = option_type("--gpus-per-node", whole_number)
    add("--gpus-per-node", metavar="N", type=gpus, help="GPUs of a node (default: as this machine)")
    trials = option_type("--trials", positive_whole_number)
    add("--trials", metavar="N", type=trials, help="plan for N jobs of each sweep, not for those of the spec")
    assume = option_type("--assume", positive_seconds)
    add("--assume", metavar="TIME", type=assume, help="runtime of jobs that never completed and request none")
    wall = option_type("--max-wall", positive_seconds)
    add("--max-wall", metavar="TIME", type=wall, help="the time that it may take")
    hours = option_type("--max-core-hours", positive_number)
    add("--max-core-hours", metavar="N", type=hours, help="the core-hours that its jobs may reserve")
    most = option_type("--max-memory", positive_bytes)
    add("--max-memory", metavar="SIZE", type=most, help="the memory that its jobs may use at one time")
    deadline = option_type("--deadline", _seconds_until)
    help_text = "as a time from now (8h) or a moment (2030-01-31T08:00): find the fewest nodes that meet it"
    add("--deadline", metavar="TIME", type=deadline, help=help_text)
    add("--json", action="store_true", help="print an object, with what is occupied over time")
    add_store_option(parser)
    return parser.parse_args(arguments)


def _seconds_until(words: str) -> float:
    """Parse a deadline, as seconds from now: `8h`, or a moment in the future. Raises UsageError for anything else."""
    import time

    from jobmeter.times import parse_moment

    try:
        return positive_seconds(words)
    except UsageError:
        pass
    try:
        moment = parse_moment(words)
    except ValueError:
        raise UsageError(f"{words!r} is neither a time, as 8h, nor a moment, as 2030-01-31T08:00") from None
    seconds = moment.timestamp() - time.time()
    if seconds <= 0:
        raise UsageError(f"{words} is over")
    return seconds
