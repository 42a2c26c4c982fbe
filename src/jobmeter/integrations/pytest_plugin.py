"""The pytest plugin: `--jobmeter` measures every test, a marker limits what a test may use.

pytest loads this module in every run, so it imports nothing but pytest until there is something to measure.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

if TYPE_CHECKING:
    from jobmeter.api.blocks import BlockMeter
    from jobmeter.api.results import Run

_PLUGIN = "jobmeter-measuring"
_MARKER = (
    "jobmeter(memory=None, cpu_seconds=None, runtime=None): measure the test, and fail it if it uses more. "
    "memory is what it may add to the memory of the process, as '500MiB'; runtime is as '3s'."
)
_FIGURES = ("cpu_seconds", "memory_growth_bytes", "memory_peak_bytes", "wall_seconds")
"""The figures in the report of a test, as properties `jobmeter_…`: JUnit files have them, and xdist passes them on."""


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("jobmeter", "measuring what tests use (jobmeter)")
    group.addoption("--jobmeter", action="store_true", help="measure every test, and show the costliest")
    group.addoption("--jobmeter-store", metavar="DIR", help="where runs are stored (default: as for jobmeter run)")
    group.addoption("--jobmeter-top", metavar="N", type=int, default=10, help="how many tests to show (default 10)")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", _MARKER)
    if config.option.jobmeter:
        _register(config)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    marked = [item for item in items if item.get_closest_marker("jobmeter") is not None]
    for item in marked:
        _limits(item)  # a marker that is not valid is reported before any test runs
    if marked and not config.pluginmanager.has_plugin(_PLUGIN):
        _register(config)


def _register(config: pytest.Config) -> None:
    config.pluginmanager.register(Measuring(config), _PLUGIN)


class _Limits(NamedTuple):
    memory_growth_bytes: int | None = None
    cpu_seconds: float | None = None
    wall_seconds: float | None = None


class Measuring:
    """Measures tests in the process that runs them, and shows the figures in the reports of all processes."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._all = bool(config.option.jobmeter)
        self._labels: dict[str, str] = {}
        self._store: str | None = None
        self._costs: list[tuple[str, dict[str, float]]] = []
        if self._all:
            self._store = _writable_store(config.option.jobmeter_store)
            self._labels = _common_labels(config)

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, Any, None]:
        limits = _limits(item)
        if limits is None and not self._all:
            yield
            return
        meter = self._meter(item)
        meter.start()
        outcome = yield
        run = meter.stop(outcome.excinfo[1] if outcome.excinfo else None)
        figures = _figures(run)
        item.user_properties.extend((f"jobmeter_{name}", value) for name, value in figures.items())
        message = _over(limits, figures, run) if limits is not None else ""
        if message and not outcome.excinfo:
            outcome.force_exception(pytest.fail.Exception(message, pytrace=False))

    def _meter(self, item: pytest.Item) -> BlockMeter:
        from jobmeter.api.blocks import measure

        if not self._all:
            return measure(item.nodeid, keep=False)
        return measure(item.nodeid, labels={**self._labels, "test": item.nodeid}, store=self._store)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        figures = {
            str(key).removeprefix("jobmeter_"): value
            for key, value in report.user_properties
            if str(key).startswith("jobmeter_")
        }
        if report.when == "call" and figures:
            self._costs.append((report.nodeid, figures))  # type: ignore[arg-type]

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if not self._costs or not self._all:
            return
        from jobmeter.terminal import printable
        from jobmeter.units import text

        costliest = sorted(self._costs, key=lambda cost: cost[1].get("cpu_seconds", 0.0), reverse=True)
        costliest = costliest[: self._config.option.jobmeter_top]
        terminalreporter.section(f"{len(costliest)} costliest of {len(self._costs)} tests measured (jobmeter)")
        terminalreporter.line(f"{'CPU':>10} {'memory':>10} {'grew by':>10} {'wall':>10}  test")
        for nodeid, figures in costliest:
            cells = (
                text(figures[name], unit) if name in figures else "?"
                for name, unit in (
                    ("cpu_seconds", "seconds"),
                    ("memory_peak_bytes", "bytes"),
                    ("memory_growth_bytes", "bytes"),
                    ("wall_seconds", "seconds"),
                )
            )
            terminalreporter.line(" ".join(f"{cell:>10}" for cell in cells) + f"  {printable(nodeid)}")


def _figures(run: Run) -> dict[str, float]:
    """Those of `_FIGURES` that were measured, by name."""
    growth = run.measured("block_mem_growth").get("peak")
    every = (run.cpu_seconds, growth, run.memory_peak_bytes, run.wall_seconds)
    return {name: value for name, value in zip(_FIGURES, every) if value is not None}


def _limits(item: pytest.Item) -> _Limits | None:
    """What the marker of a test allows; None if it has no marker. Raises pytest.UsageError if it is not valid."""
    marker = item.get_closest_marker("jobmeter")
    if marker is None:
        return None
    from jobmeter.errors import UsageError
    from jobmeter.settings import positive_bytes, positive_number, positive_seconds

    parsers = {"memory": positive_bytes, "cpu_seconds": positive_number, "runtime": positive_seconds}
    limits: dict[str, Any] = {}
    where = f"{item.nodeid}: marker jobmeter"
    if marker.args:
        raise pytest.UsageError(f"{where}: name its limits, as in jobmeter(memory='500MiB')")
    for name, value in marker.kwargs.items():
        if name not in parsers:
            raise pytest.UsageError(f"{where}: there is no limit {name!r}. Limits are {', '.join(parsers)}.")
        try:
            limits[name] = parsers[name](str(value))
        except UsageError as error:
            raise pytest.UsageError(f"{where}: {name}: {error}") from None
    return _Limits(limits.get("memory"), limits.get("cpu_seconds"), limits.get("runtime"))


def _over(limits: _Limits, figures: dict[str, float], run: Run) -> str:
    """The figures that are above the limits, in words; empty when none is."""
    from jobmeter.units import text

    words = {
        "memory_growth_bytes": ("memory grew by", "bytes"),
        "cpu_seconds": ("CPU time was", "seconds"),
        "wall_seconds": ("it took", "seconds"),
    }
    over = []
    for name, limit in limits._asdict().items():
        used = figures.get(name)
        if limit is not None and used is not None and used > limit:
            verb, unit = words[name]
            over.append(f"{verb} {text(used, unit)}, limit {text(limit, unit)}")
    return f"jobmeter: {run.name} used more than its marker allows: {'; '.join(over)}" if over else ""


def _writable_store(given: str | None) -> str:
    """The directory of the store. Raises pytest.UsageError if it cannot be written."""
    from jobmeter.errors import JobmeterError
    from jobmeter.settings import resolve
    from jobmeter.store_access import make_store_directory

    try:
        store = str(resolve("store", given))
        make_store_directory(store, "journal")
    except JobmeterError as error:
        raise pytest.UsageError(f"--jobmeter-store: {error}") from None
    except OSError as error:
        raise pytest.UsageError(
            f"--jobmeter-store: {error.filename}: {error.strerror}. Name a directory that can be written."
        ) from None
    return store


def _common_labels(config: pytest.Config) -> dict[str, str]:
    """The revision of the project, and the worker of pytest-xdist."""
    labels = {}
    revision = _git_revision(str(config.rootpath))
    if revision:
        labels["revision"] = revision
    worker = getattr(config, "workerinput", {}).get("workerid")
    if worker:
        labels["worker"] = worker
    return labels


def _git_revision(directory: str) -> str:
    """The commit that is checked out; empty outside of a git repository, or without git."""
    import subprocess

    command = ["git", "-C", directory, "rev-parse", "HEAD"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=10).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return ""
