"""`jobmeter compare --container-overhead`: what a container costs a command."""

from __future__ import annotations

import json
import os
import time
from typing import TYPE_CHECKING, Any

from jobmeter.cli.compare import print_differences
from jobmeter.cli.options import Parser, option_type
from jobmeter.cli.output import warn
from jobmeter.cli.progress import counted
from jobmeter.cli.run import add_container_options
from jobmeter.cli.run_container import container_options
from jobmeter.errors import LaunchError, UsageError
from jobmeter.launch.container_spec import ContainerOptions
from jobmeter.launch.spawn import Streams
from jobmeter.session.run import JobOptions, Session

if TYPE_CHECKING:
    from jobmeter.session.container import ContainerSession

_RUNS = 10


def main(arguments: list[str]) -> int:
    parser = Parser(
        "compare --container-overhead IMAGE",
        "Run a command N times bare and N times in a container, in turns, and tell what the container costs: "
        "start-up, CPU time, memory and I/O, with 95 % intervals.",
        usage="jobmeter compare --container-overhead IMAGE [options] -- COMMAND [ARGUMENT...]",
    )
    add = parser.add_argument
    add("--runs", metavar="N", type=option_type("--runs", _count), default=_RUNS, help=f"N (default {_RUNS})")
    add("--json", action="store_true", help="print an object")
    add_container_options(parser, image="--container-overhead")
    add("command", nargs="*", metavar="COMMAND", help="the command; it must be there bare and in the image")
    options = parser.parse_args(arguments)
    if not options.command:
        raise UsageError("--container-overhead: no command given. Write: … --container-overhead IMAGE -- COMMAND")
    bare, contained = measure(container_options(options), options.command, options.runs)
    return _tell(options.container, options.command, bare, contained, as_json=options.json)


def measure(
    container: ContainerOptions, command: list[str], runs: int
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The figures of each run, bare and contained. In turns, so that what else the machine does meets both alike."""
    from jobmeter.session.container import ContainerSession
    from jobmeter.session.container_job import ContainerJob

    nothing = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    streams = Streams(nothing, nothing, None)
    bare, contained = [], []
    for _ in counted(range(runs), "running"):
        bare.append(_figures("bare", Session(JobOptions(command, streams=streams, orphans="end"), warn=warn)))
        session = ContainerSession(ContainerJob(container, command, streams=streams), warn=warn)
        session.prepare()
        contained.append(_figures("in the container", session))
    os.close(nothing)
    return bare, contained


def _figures(where: str, session: Session | ContainerSession) -> dict[str, Any]:
    began = time.monotonic()
    session.start()
    started = time.monotonic() - began
    record = session.wait()
    whole = time.monotonic() - began
    if session.outcome.status != "completed":
        code = session.outcome.shell_code
        raise LaunchError(f"the command fails {where} (exit code {code}): what it used would tell nothing")
    usage = {name: figure["value"] for name, figure in record["usage"].items()}
    return {
        **usage,
        "wall_seconds": record["wall_seconds"],
        "startup_seconds": record["provenance"].get("container", {}).get("startup_seconds", started),
        "whole_seconds": whole,
    }


def _tell(
    image: str, command: list[str], bare: list[dict[str, Any]], contained: list[dict[str, Any]], *, as_json: bool
) -> int:
    from jobmeter.analyse.compare import MEASURES, Measure, compare

    measures = (
        Measure("startup_seconds", "start-up", "seconds", False),
        *(m._replace(worse=False) for m in MEASURES if m.key not in ("cpu_mean_percent", "memory_mean_bytes")),
        Measure("whole_seconds", "all together", "seconds", False),
    )
    differences = compare(bare, contained, measures=measures)
    if as_json:
        found = {
            "a": {"of": "bare", "runs": len(bare)},
            "b": {"of": image, "runs": len(contained)},
            "command": command,
            "measures": [difference.told() for difference in differences],
        }
        print(json.dumps(found, indent=2))
    else:
        print_differences(f"A: bare, {len(bare)} runs", f"B: in {image}, {len(contained)} runs", differences)
    return 0


def _count(text: str) -> int:
    if not text.isdigit() or int(text) == 0:
        raise UsageError(f"{text!r} is not a number of runs")
    return int(text)
