"""`jobmeter compare --container-overhead`: what a container costs a command."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, NamedTuple

from jobmeter.cli.compare import print_differences
from jobmeter.cli.run import add_container_options
from jobmeter.cli.run_container import container_options
from jobmeter.cli.shared.options import Parser, option_type
from jobmeter.cli.shared.output import print_json, print_lines, warn
from jobmeter.cli.shared.progress import counted
from jobmeter.errors import LaunchError, UsageError
from jobmeter.launch.container.spec import ContainerOptions
from jobmeter.launch.spawn import Streams
from jobmeter.model import Status
from jobmeter.session.command import JobOptions, LaunchedCommand
from jobmeter.session.session import Session
from jobmeter.settings import positive_whole_number

if TYPE_CHECKING:
    from jobmeter.record.types import Record

_RUNS = 10


def main(arguments: list[str]) -> int:
    parser = Parser(
        "compare --container-overhead IMAGE",
        "Run a command N times bare and N times in a container, in turns, and show what the container costs: "
        "start-up, CPU time, memory and I/O, with 95 % intervals.",
        usage="jobmeter compare --container-overhead IMAGE [options] -- COMMAND [ARGUMENT...]",
    )
    add = parser.add_argument
    count = option_type("--runs", positive_whole_number)
    add("--runs", metavar="N", type=count, default=_RUNS, help=f"N (default {_RUNS})")
    add("--json", action="store_true", help="print an object")
    add_container_options(parser, image="--container-overhead")
    add("command", nargs="*", metavar="COMMAND", help="the command; it must exist on this machine and in the image")
    options = parser.parse_args(arguments)
    if not options.command:
        raise UsageError("--container-overhead: no command given. Write: … --container-overhead IMAGE -- COMMAND")
    bare, contained = measure(container_options(options), options.command, options.runs)
    return _report(options.container, options.command, bare, contained, as_json=options.json)


class Timed(NamedTuple):
    """One run, and the times that only the caller can measure."""

    record: Record
    startup_seconds: float
    whole_seconds: float


def measure(container: ContainerOptions, command: list[str], runs: int) -> tuple[list[Timed], list[Timed]]:
    """Run the command bare and in the container, in turns, so that other load on the machine affects both alike."""
    from jobmeter.session.container import LaunchedContainer
    from jobmeter.session.container_job import ContainerJob

    nothing = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    streams = Streams(nothing, nothing, None)
    bare, contained = [], []
    for _ in counted(range(runs), "running"):
        job = LaunchedCommand(JobOptions(command, streams=streams, orphans="end"))
        bare.append(_run("bare", Session(job, warn=warn)))
        session = Session(LaunchedContainer(ContainerJob(container, command, streams=streams)), warn=warn)
        session.prepare()
        contained.append(_run("in the container", session))
    os.close(nothing)
    return bare, contained


def _run(where: str, session: Session) -> Timed:
    began = time.monotonic()
    session.start()
    started = time.monotonic() - began
    record = session.wait()
    whole = time.monotonic() - began
    if session.outcome.status != Status.COMPLETED:
        code = session.outcome.shell_code
        raise LaunchError(
            f"the command fails {where} (exit code {code}), so its figures cannot be compared. Try it by hand first"
        )
    return Timed(record, record["provenance"].get("container", {}).get("startup_seconds", started), whole)


def _report(image: str, command: list[str], bare: list[Timed], contained: list[Timed], *, as_json: bool) -> int:
    from jobmeter.analyse.compare import MEASURES, ComparedFigure, compare
    from jobmeter.analyse.same_source import FIGURES

    measures = (
        ComparedFigure("startup_seconds", "startup", "seconds", False),
        *(m._replace(worse=False) for m in MEASURES if m.key in ("wall_seconds", *FIGURES)),
        ComparedFigure("whole_seconds", "whole", "seconds", False),
    )
    figures = _figures(bare, contained)
    differences = compare(figures.bare, figures.contained, measures=measures)
    names = {measure.key: measure.name for measure in measures}
    why_not = {key: f"{names[key]} cannot be compared: {why}" for key, why in figures.why_not.items()}
    if as_json:
        from_key = {key: {"from": source} for key, source in figures.sources.items()}
        result = {
            "a": {"of": "bare", "runs": len(bare)},
            "b": {"of": image, "runs": len(contained)},
            "command": command,
            "measures": [
                *({**difference.as_json(), **from_key.get(difference.measure.key, {})} for difference in differences),
                *({"key": key, "words": words} for key, words in why_not.items()),
            ],
        }
        print_json(result)
        return 0
    print_differences(f"A: bare, {len(bare)} runs", f"B: in {image}, {len(contained)} runs", differences)
    print_lines(why_not.values())
    return 0


class _Figures(NamedTuple):
    """The figures of each run. A figure has the same source in all runs."""

    bare: list[dict[str, float]]
    contained: list[dict[str, float]]
    sources: dict[str, str]
    why_not: dict[str, str]  # figure → why no source has it in all runs


def _figures(bare: list[Timed], contained: list[Timed]) -> _Figures:
    from jobmeter.analyse.same_source import FIGURES, SameSource, from_same_source

    figures = _Figures(_times(bare), _times(contained), {}, {})
    records = [[run.record for run in side] for side in (bare, contained)]
    for figure in FIGURES:
        same = from_same_source(records[0], records[1], figure)
        if isinstance(same, SameSource):
            figures.sources[figure] = same.source
            for side, values in ((figures.bare, same.a), (figures.contained, same.b)):
                for run, value in zip(side, values):
                    run[figure] = value
        elif same is not None:
            reason = f"not every run has {same.a}"
            if same.a != same.b:
                reason = f"bare it is from {same.a}, in the container from {same.b}, and no source has it in all runs"
            figures.why_not[figure] = reason
    return figures


def _times(runs: list[Timed]) -> list[dict[str, float]]:
    return [
        {
            "wall_seconds": run.record["wall_seconds"],
            "startup_seconds": run.startup_seconds,
            "whole_seconds": run.whole_seconds,
        }
        for run in runs
    ]
