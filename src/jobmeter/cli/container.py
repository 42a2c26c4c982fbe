"""`jobmeter container`: what a container runtime reports about a container."""

from __future__ import annotations

from typing import Any

from jobmeter.cli.shared.options import Parser
from jobmeter.cli.shared.output import print_json, print_lines
from jobmeter.errors import UsageError
from jobmeter.units import text


def main(arguments: list[str]) -> int:
    if arguments[:1] == ["info"]:
        return info(arguments[1:])
    if arguments[:1] in (["-h"], ["--help"]):
        return info(arguments)
    raise UsageError("container: write `jobmeter container info CONTAINER`; to run one: jobmeter run --container IMAGE")


def info(arguments: list[str]) -> int:
    """`jobmeter container info`."""
    parser = Parser("container info", "Show image, creation, state and limits of a container.")
    parser.add_argument("container", metavar="CONTAINER", help="its name, its id or the beginning of one")
    parser.add_argument(
        "--engine", metavar="NAME", help="container runtime: docker, podman or auto (default): the first that answers"
    )
    parser.add_argument("--json", action="store_true", help="print an object")
    options = parser.parse_args(arguments)

    from jobmeter.launch.container.client import runtime_name
    from jobmeter.launch.container.info import describe, find_container
    from jobmeter.launch.container.runtime import open_runtime

    runtime = open_runtime(runtime_name(options.engine))
    try:
        description = describe(runtime, find_container(runtime, options.container))
    finally:
        runtime.close()
    if options.json:
        print_json(description)
    else:
        print_lines(_lines(description))
    return 0


def _lines(description: dict[str, Any]) -> list[str]:
    """One line for each field."""
    limits = description["limits"]
    rows = {
        **{name: str(value) for name, value in description.items() if name not in ("command", "limits")},
        "command": " ".join(description["command"]),
        "cpus": text(limits["cpus"], "count") if "cpus" in limits else "no limit",
        "memory": text(limits["memory_bytes"], "bytes") if "memory_bytes" in limits else "no limit",
    }
    return [f"{name:<11} {value}" for name, value in rows.items()]
