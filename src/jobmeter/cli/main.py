"""`jobmeter`: finds the command, runs it, and turns every error into one line and an exit code."""

from __future__ import annotations

import gc
import importlib
import os
import signal
import sys
from collections.abc import Sequence
from types import ModuleType

from jobmeter import __version__
from jobmeter.errors import JobmeterError, UsageError
from jobmeter.light_typing import Any, NamedTuple, NoReturn


class Command(NamedTuple):
    help: str
    module: str


COMMANDS = {
    "run": Command("run a command and measure it with everything it starts", "jobmeter.cli.run"),
    "attach": Command("measure a process that already runs, with its descendants", "jobmeter.cli.attach"),
    "bench": Command("run commands in turns, and compare what they use", "jobmeter.cli.bench"),
    "container": Command("show image, state and limits of a container", "jobmeter.cli.container"),
    "workflow": Command("run the jobs of a spec, in order and within what each requests", "jobmeter.cli.workflow"),
    "data": Command("read or write values that jobs of a workflow exchange", "jobmeter.cli.data"),
    "metric": Command("report a number from inside a job, as the loss of a model", "jobmeter.cli.metric"),
    "submit": Command("send one job to an engine, and return at once", "jobmeter.cli.submit"),
    "worker": Command("take jobs from a Celery broker and run them on this machine", "jobmeter.cli.worker"),
    "cluster": Command("show what a cluster reserves and what it really uses", "jobmeter.cli.cluster"),
    "ls": Command("list the stored runs, newest first", "jobmeter.cli.ls"),
    "show": Command("show one run: what it used, how it ended, what stands out", "jobmeter.cli.show"),
    "plot": Command("draw what runs used over time, as a page or as pictures", "jobmeter.cli.plot"),
    "stats": Command("show statistics of the runs of each job", "jobmeter.cli.stats"),
    "compare": Command("show what changed between runs, and whether it can be chance", "jobmeter.cli.compare"),
    "check": Command("report which jobs used more than they requested", "jobmeter.cli.check"),
    "size": Command("recommend what to request next time", "jobmeter.cli.size"),
    "plan": Command("forecast what a workflow will take, and whether it fits a budget", "jobmeter.cli.plan"),
    "study": Command("show what the trials of a sweep cost, and which are best", "jobmeter.cli.study"),
    "import": Command("store runs that con-duct, Nextflow, Slurm or GNU time recorded", "jobmeter.cli.import_"),
    "export": Command("write runs as CSV, JSON Lines or Parquet", "jobmeter.cli.export"),
    "label": Command("add labels to a run, or remove them", "jobmeter.cli.label"),
    "rm": Command("remove runs from the store", "jobmeter.cli.rm"),
    "gc": Command("remove old runs from the store", "jobmeter.cli.gc"),
    "measurements": Command("list what can be measured, and whether it can here", "jobmeter.cli.measurements"),
    "schema": Command("print the JSON Schema of the run record", "jobmeter.cli.schema"),
    "completion": Command("print the script that completes commands in bash, zsh or fish", "jobmeter.cli.completion"),
    "doctor": Command("show what this machine allows, and how to get what is missing", "jobmeter.cli.doctor"),
}
"""Name → help, and the module whose `main(arguments)` runs the command. It is imported when the command is called."""

HIDDEN = {"__complete": Command("print what a word on the command line may become", "jobmeter.cli.complete")}
"""Commands for jobmeter's own scripts, which the help does not list."""


def entry() -> NoReturn:
    """Run the program `jobmeter`. Exits at once: threads that wait for signals or samples need no clean-up."""
    if sys.argv[1:2] == ["workflow"] and sys.getfilesystemencoding() != "utf-8":
        _start_again_in_utf8()
    prepare_streams()
    sys.unraisablehook = _report_unraisable
    code = main()
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None:
                stream.flush()
        except OSError:
            pass  # closed by the reader
    os._exit(code)


def _start_again_in_utf8() -> None:
    """Run this program in Python's UTF-8 mode.

    The text of a spec becomes paths and arguments of commands, and a locale such as ISO-8859-1 cannot encode all of it.
    """
    os.execv(sys.executable, [sys.executable, *_UTF8_MODE, *sys.orig_argv[1:]])


def _report_unraisable(unraisable: Any) -> None:
    """Report as Python does, except for MemoryError, which `main` reports in one line."""
    if not isinstance(unraisable.exc_value, MemoryError):
        sys.__unraisablehook__(unraisable)


_UTF8_MODE = ("-X", "utf8")


def main(arguments: list[str] | None = None) -> int:
    """Run one command and return its exit code."""
    arguments = sys.argv[1:] if arguments is None else arguments
    try:
        return _call(arguments[0], arguments[1:]) if arguments else _show_usage()
    except JobmeterError as error:
        return _report(error.lines, error.exit_code)
    except BrokenPipeError:
        # The reader of our output closed it. Python would print an error at exit otherwise.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except KeyboardInterrupt:
        return 130
    except OSError as error:
        # An error that no part of jobmeter expects: no file descriptors, no memory, a disk that fails.
        subject = "the output cannot be written" if error.filename is None else str(error.filename)
        return _report([f"{subject}: {error.strerror or error}"], JobmeterError.exit_code)
    except UnicodeEncodeError as error:
        letters = ascii(error.object[error.start : error.end])
        problem = f"the encoding {error.encoding} of this locale has no {letters}"
        return _report([f"{problem}. Use one with UTF-8, as LC_ALL=C.UTF-8, or another name."], UsageError.exit_code)
    except (MemoryError, SystemError):  # CPython raises SystemError if it has no memory for an exception
        return _report(["there is not enough memory"], JobmeterError.exit_code)
    except ImportError as error:
        # A package that is missing or damaged, or a library that finds no memory.
        why = str(error).strip().splitlines()[-1:] or ["unknown"]
        advice = "Install jobmeter anew, with its packages: pip install --force-reinstall jobmeter"
        return _report([f"{error.name or 'a package'} cannot be loaded: {why[0]}. {advice}"], JobmeterError.exit_code)


def _report(lines: Sequence[str], exit_code: int) -> int:
    from jobmeter.cli.shared.output import print_to_stderr

    print_to_stderr([f"jobmeter: {lines[0]}", *lines[1:]])
    return exit_code


def prepare_streams() -> None:
    """Escape characters that the encoding of stdout or stderr lacks, so that no output fails because of one."""
    # In the UTF-8 mode of `_start_again_in_utf8`, the terminal still has the encoding of the locale.
    encoding = _locale_encoding() if tuple(sys.orig_argv[1:3]) == _UTF8_MODE else None
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.reconfigure(encoding=encoding, errors="backslashreplace")  # type: ignore[union-attr]


def _locale_encoding() -> str:
    import locale  # late: few need it

    locale.setlocale(locale.LC_CTYPE, "")
    return locale.nl_langinfo(locale.CODESET)


def _fill_closed_streams() -> None:
    """Open standard streams that our caller closed: no other file may get their numbers. Jobs do not inherit them."""
    for number, flags in ((0, os.O_RDONLY), (1, os.O_RDONLY), (2, os.O_WRONLY)):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, flags)  # gets `number`, the lowest that is free


def _replace_closed_streams() -> None:
    """Make a closed stdin or stdout a file again: an empty one, and one whose writes fail with OSError."""
    if sys.stdin is None:
        sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115 - for the rest of this process
    if sys.stdout is None:
        sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115 - for the rest of this process


def _show_usage() -> int:
    from jobmeter.cli.shared.output import print_to_stderr

    print_to_stderr(usage().splitlines())
    return 2


def _call(name: str, arguments: list[str]) -> int:
    _fill_closed_streams()
    if name != "run":  # the job of `run` gets the streams as they were
        _replace_closed_streams()
    if name in ("-h", "--help", "help"):
        return _print(usage())
    if name in ("-V", "--version"):
        return _print(f"jobmeter {__version__}")
    command = COMMANDS.get(name) or HIDDEN.get(name)
    if command is None:
        from jobmeter.suggestion import suggest  # late: few runs need it

        hint = suggest(name, COMMANDS, f"To run a command: jobmeter run -- {name}")
        raise UsageError(f"there is no command {name!r}. {hint}")
    module = _import_command(command.module)
    if name != "run" and signal.getsignal(signal.SIGINT) is signal.SIG_DFL:
        signal.signal(signal.SIGINT, signal.default_int_handler)  # so that commands clean up on Ctrl-C
    try:
        code = _run_command(module, arguments)
    except SystemExit as ended:  # `--help`
        code = int(ended.code or 0)
    if sys.stdout is not None:
        sys.stdout.flush()
    return code


_REPORTED = (JobmeterError, OSError, UnicodeEncodeError, MemoryError, SystemError, ImportError)
"""Errors that `main` reports in one line."""


def _run_command(module: Any, arguments: list[str]) -> int:
    """Run the command. If it fails on an index that others changed or the disk damaged, discard that and run again."""
    try:
        code: int = module.main(arguments)
    except Exception as error:
        index = sys.modules.get("jobmeter.store.index.index")
        discarded = [] if isinstance(error, _REPORTED) or index is None else index.discard_read_files()
        if not discarded:
            raise
        from jobmeter.cli.shared.output import warn

        warn(f"{', '.join(discarded)}: has invalid values; it is rebuilt from the journals")
        code = module.main(arguments)
    return code


def _import_command(name: str) -> Any:
    """Import the module of a command at the least cost: this saves a tenth of a whole `jobmeter run -- true`.

    Garbage collection is off, as it finds nothing in imported modules. gettext, which argparse imports, is replaced:
    it would search for translations of argparse's messages, and mix them with our English.
    """
    gc.disable()
    untranslated = ModuleType("gettext")
    untranslated.gettext = str  # type: ignore[attr-defined]
    untranslated.ngettext = lambda one, several, count: one if count == 1 else several  # type: ignore[attr-defined]
    if "gettext" not in sys.modules:
        sys.modules["gettext"] = untranslated
    import argparse  # noqa: F401 - the command finds it already imported

    if sys.modules["gettext"] is untranslated:
        del sys.modules["gettext"]
    module = importlib.import_module(name)
    gc.freeze()
    gc.enable()
    return module


def _print(text: str) -> int:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()
    return 0


def usage() -> str:
    width = max(map(len, COMMANDS)) + 2
    lines = [
        "jobmeter measures what a job really used,",
        "and recommends what to request next time.",
        "",
        "    jobmeter run -- COMMAND [ARGUMENT...]",
        "",
        "Commands:",
        *(f"  {name:<{width}}{command.help}" for name, command in COMMANDS.items()),
        "",
        "`jobmeter COMMAND --help` shows its options.",
    ]
    return "\n".join(lines)
