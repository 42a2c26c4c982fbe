"""Fixtures that several folders of tests share, and which tests run side by side."""

from __future__ import annotations

import os
import re
import signal
import warnings
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from jobmeter.kernel import libc
from jobmeter.record import build
from jobmeter.record.build import as_json
from jobmeter.record.types import Record
from tests import running
from tests.records import MOST_CHECKED, check_journals, parse_record

pytest_plugins = ["tests.container_engines"]

# On a busy machine, making an example and trying it take any time.
settings.register_profile("any speed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any speed")

_SET_CHILD_SUBREAPER = 36  # prctl(2)
_ENGINES = {"docker", "podman", "engine", "rootless", "nothing_left", "start_engine"}


@pytest.fixture(autouse=True)
def every_record_follows_the_schema(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[None]:
    """Check the records of the journals that a test wrote, or a fixture for it, and those built in this process.

    A test that is marked `no_records` writes lines that are no records, to see what readers do with them.
    """
    with pytest.MonkeyPatch.context() as patch:
        built = _remember_built(patch)
        yield
    folders = _new_folders(tmp_path_factory)
    if request.node.get_closest_marker("no_records") is None:
        for folder in folders:
            check_journals(folder)
        for record in built:
            parse_record(as_json(record))


def _remember_built(patch: pytest.MonkeyPatch) -> list[Record]:
    """The list of the records that will be built in this process: also those that no journal keeps (`keep=False`)."""
    built: list[Record] = []
    complete = build.complete

    def complete_and_remember(*arguments: Any, **options: Any) -> Record:
        record = complete(*arguments, **options)
        if len(built) < MOST_CHECKED:
            built.append(record)
        return record

    patch.setattr(build, "complete", complete_and_remember)
    return built


@pytest.fixture(autouse=True)
def this_process_stays_as_it_was(request: pytest.FixtureRequest) -> Iterator[None]:
    """What a test blocks or closes, by calling a command in this process, is not so in the programs of the next.

    Nor do orphans come to this process, which would not wait for them.
    """
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    yield
    signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
    libc.call("prctl", _SET_CHILD_SUBREAPER, 0, 0, 0, 0)
    for stream in (0, 1, 2):
        try:
            os.fstat(stream)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest number that is free
            warnings.warn(f"{request.node.nodeid} closed descriptor {stream}", stacklevel=1)
        os.set_inheritable(stream, True)  # `run` closes its own, and keeps what it puts there to itself


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    """Name failures as they happen, where pytest prints dots; do not hand down signals that the caller ignores."""
    _handle_ignored_signals()
    terminal = config.pluginmanager.get_plugin("terminalreporter")
    if terminal is not None and not hasattr(config, "workerinput") and config.get_verbosity() <= 0:
        config.pluginmanager.register(_NameFailures(terminal))


def _handle_ignored_signals() -> None:
    """Have programs that tests start end by Ctrl-C and the like: `nohup`, and `&` in a script, ignore these signals."""
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)


class _NameFailures:
    """A run that is cut off, by a limit of time, has still said which tests failed, and why."""

    def __init__(self, terminal: pytest.TerminalReporter) -> None:
        self._terminal = terminal

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            crash = getattr(report.longrepr, "reprcrash", None)
            why = str(crash.message).partition("\n")[0][:300] if crash else ""
            self._terminal.write_line(f"\nFAILED at {report.when}: {report.nodeid}  {why}")


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Have `--last-failed` find tests of a group too: pytest goes by their names, pytest-xdist adds the group to it."""
    failures = session.config.pluginmanager.get_plugin("lfplugin")
    if failures is not None:
        failures.lastfailed |= {re.sub(r"@\w+$", "", name): True for name in failures.lastfailed}


_seen: set[str] = set()


def _new_folders(factory: pytest.TempPathFactory) -> list[str]:
    """Directories for tests that were not looked at before."""
    base = str(factory.getbasetemp())
    there_are = [
        *(entry.path for entry in os.scandir(base) if entry.is_dir(follow_symlinks=False)),
        *running.WORKPLACES,
    ]
    new = [folder for folder in there_are if folder not in _seen]
    _seen.update(new)
    return new


def pytest_itemcollected(item: pytest.Item) -> None:
    """Keep those that share something costly, or count what the machine has, in one worker of pytest-xdist."""
    group = _group_of(item)
    if group is not None:
        item.add_marker(pytest.mark.xdist_group(group))


def _group_of(item: pytest.Item) -> str | None:
    path = item.nodeid.partition("::")[0]
    if _ENGINES & set(getattr(item, "fixturenames", ())) or "container" in path:
        return "containers"  # one engine of each kind, and no container of another worker's
    if "ray" in re.split(r"[\W_]", item.nodeid):
        return "ray"  # one cluster for the tests that do it no harm
    if "/guest/" in path:
        return "guest"  # one virtual machine
    if "browser" in path or path.endswith(("cli/workflow/test_run.py", "test_exactness.py")):
        return path  # a fixture of the module, or files on a tmpfs
    return None
