"""`jobmeter`: finds the command, runs it, and turns every error into one line and an exit code."""

from __future__ import annotations

import importlib
import os
import sys
from typing import NamedTuple, NoReturn

from jobmeter import __version__
from jobmeter.errors import JobmeterError, UsageError


class Command(NamedTuple):
    help: str
    module: str


COMMANDS = {
    "run": Command("run a command and measure it with everything it starts", "jobmeter.cli.run"),
    "attach": Command("measure a process that already runs, with its descendants", "jobmeter.cli.attach"),
    "container": Command("show image, state and limits of a container", "jobmeter.cli.container"),
    "workflow": Command("run the jobs of a spec, in order and within what each requests", "jobmeter.cli.workflow"),
    "ls": Command("list the stored runs, newest first", "jobmeter.cli.ls"),
    "show": Command("show one run: what it used, how it ended, what stands out", "jobmeter.cli.show"),
    "plot": Command("draw what runs used over time, as a page or as pictures", "jobmeter.cli.plot"),
    "stats": Command("show what the runs of each job have in common", "jobmeter.cli.stats"),
    "compare": Command("show what changed between runs, and whether it can be chance", "jobmeter.cli.compare"),
    "check": Command("report which jobs used more than they requested", "jobmeter.cli.check"),
    "size": Command("recommend what to request next time", "jobmeter.cli.size"),
    "import": Command("store runs that con-duct, Nextflow, Slurm or GNU time recorded", "jobmeter.cli.import_"),
    "export": Command("write runs as CSV, JSON Lines or Parquet", "jobmeter.cli.export"),
    "label": Command("add labels to a run, or remove them", "jobmeter.cli.label"),
    "rm": Command("remove runs from the store", "jobmeter.cli.rm"),
    "gc": Command("remove old runs from the store", "jobmeter.cli.gc"),
    "measurements": Command("list what can be measured, and whether it can here", "jobmeter.cli.measurements"),
    "schema": Command("print the JSON Schema of the run record", "jobmeter.cli.schema"),
    "doctor": Command("show what this machine allows, and how to get what is missing", "jobmeter.cli.doctor"),
}
"""Name → help and the module whose `main(arguments)` does it. Imported when called."""


def entry() -> NoReturn:
    """The program `jobmeter`. Exits at once: threads that wait for signals or samples have nothing to clean up."""
    code = main()
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None:
                stream.flush()
        except OSError:
            pass  # closed by the reader
    os._exit(code)


def main(arguments: list[str] | None = None) -> int:
    """Run one command and return its exit code."""
    arguments = sys.argv[1:] if arguments is None else arguments
    if not arguments or arguments[0] in ("-h", "--help", "help"):
        print(usage(), file=sys.stdout if arguments else sys.stderr)
        return 0 if arguments else 2
    if arguments[0] in ("-V", "--version"):
        print(f"jobmeter {__version__}")
        return 0
    try:
        return _call(arguments[0], arguments[1:])
    except JobmeterError as error:
        if sys.stderr is not None:
            print(f"jobmeter: {error}", file=sys.stderr)
        return error.exit_code
    except BrokenPipeError:
        # The reader of our output closed it. Python would print an error at exit otherwise.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except KeyboardInterrupt:
        return 130


def _call(name: str, arguments: list[str]) -> int:
    command = COMMANDS.get(name)
    if command is None:
        from jobmeter.suggestion import suggest  # late: few runs need it

        hint = suggest(name, COMMANDS, f"To run a command: jobmeter run -- {name}")
        raise UsageError(f"there is no command {name!r}. {hint}")
    code: int = importlib.import_module(command.module).main(arguments)
    if sys.stdout is not None:
        sys.stdout.flush()
    return code


def usage() -> str:
    width = max(map(len, COMMANDS)) + 2
    lines = [
        "jobmeter measures what a job really used, and recommends what to request next time.",
        "",
        "    jobmeter run -- COMMAND [ARGUMENT...]",
        "",
        "Commands:",
        *(f"  {name:<{width}}{command.help}" for name, command in COMMANDS.items()),
        "",
        "`jobmeter COMMAND --help` shows its options.",
    ]
    return "\n".join(lines)
