"""`jobmeter workflow`: runs the jobs of a spec, which describes what each of them needs, with one command."""

from __future__ import annotations

import importlib
import os
import sys

from jobmeter.cli.main import Command
from jobmeter.cli.shared.output import print_to_stderr
from jobmeter.errors import UsageError
from jobmeter.suggestion import suggest

COMMANDS = {
    "run": Command("run the jobs of a spec, each as soon as it may", "jobmeter.cli.workflow.run"),
    "resume": Command("run what is missing, changed or failed", "jobmeter.cli.workflow.resume"),
    "validate": Command("report all that is wrong with specs, and where", "jobmeter.cli.workflow.validate"),
    "convert": Command("write a spec in another format, or make one from a graph", "jobmeter.cli.workflow.convert"),
    "status": Command("show how far a workflow is", "jobmeter.cli.workflow.status"),
    "results": Command("show what each job used, attempt by attempt", "jobmeter.cli.workflow.results"),
    "logs": Command("print what a job wrote, also while it runs", "jobmeter.cli.workflow.logs"),
    "list": Command("list the workflows that were run", "jobmeter.cli.workflow.list_"),
    "cancel": Command("end a workflow that is being run, or one job of it", "jobmeter.cli.workflow.cancel"),
    "graph": Command("draw which job needs which", "jobmeter.cli.workflow.graph"),
}
"""Name → help, and the module whose `main(arguments)` runs the command."""


def main(arguments: list[str]) -> int:
    if not arguments:
        print_to_stderr(usage().splitlines())
        return 2
    if arguments[0] in ("-h", "--help"):
        sys.stdout.write(f"{usage()}\n")
        return 0
    command = COMMANDS.get(arguments[0])
    if command is None:
        raise UsageError(f"there is no command 'workflow {arguments[0]}'. {_hint(arguments[0])}")
    code: int = importlib.import_module(command.module).main(arguments[1:])
    return code


def usage() -> str:
    width = max(map(len, COMMANDS)) + 2
    return "\n".join(
        [
            "usage: jobmeter workflow COMMAND [options]",
            "",
            "Runs the jobs of a spec, and reports which requested too little or too much.",
            "",
            *(f"  {name:<{width}}{command.help}" for name, command in COMMANDS.items()),
            "",
            "`jobmeter workflow COMMAND --help` shows its options.",
        ]
    )


def _hint(name: str) -> str:
    if os.path.isfile(name):
        return f"To run a spec: jobmeter workflow run {name}"
    return suggest(name, COMMANDS)
