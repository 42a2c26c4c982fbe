"""What Python programs get: figures with their source, series, tables, a card for notebooks, the stored runs."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import jobmeter
from jobmeter.errors import UsageError
from tests.parts import need_module
from tests.runs import record
from tests.waiting import LONG, wait_for


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, jobmeter.Run]:
    """A store with a run that has windows."""
    store = tmp_path_factory.mktemp("store")
    command = [sys.executable, "-S", "-c", "held = b'x' * (30 << 20)\nimport time\ntime.sleep(0.6)"]
    return store, jobmeter.run(command, name="holds", store=str(store), interval=0.05, window=0.1)


def test_every_headline_figure_has_value_source_and_quality(stored: tuple[Path, jobmeter.Run]) -> None:
    usage = stored[1].usage
    for name, figure in stored[1].record["usage"].items():
        assert (figure["value"], figure["from"], figure["quality"]) == usage[name][:3]
    assert usage.memory_peak_bytes is not None
    assert usage.memory_peak_bytes.value > 30 << 20
    assert "MiB" in str(usage.memory_peak_bytes)
    assert set(usage) <= set(dir(usage))
    with pytest.raises(
        AttributeError, match=r"no headline figure 'memory_peek_bytes'\. Did you mean 'memory_peak_bytes'"
    ):
        usage.memory_peek_bytes  # noqa: B018


def test_a_figure_that_was_not_measured_is_none() -> None:
    run = jobmeter.Run(record("a"))
    assert None is run.usage.processes_peak
    assert {"seconds": []} == run.series()


def test_series_are_those_of_the_windows(stored: tuple[Path, jobmeter.Run]) -> None:
    store, run = stored
    series = run.series(["proc_rss_total", "proc_read_bytes"])
    assert ["seconds", "proc_rss_total", "proc_read_bytes"] == list(series)
    assert len(series["seconds"]) == len(series["proc_rss_total"]) > 2
    assert series["seconds"] == sorted(series["seconds"])
    # A busy machine may leave a window without a sample.
    assert max(value for value in series["proc_rss_total"] if value is not None) > 30 << 20
    again = jobmeter.open_store(store).run("holds")
    assert series == again.series(["proc_rss_total", "proc_read_bytes"])
    with pytest.raises(UsageError, match=r"no measurement 'proc_rss_totl'\. Did you mean 'proc_rss_total'"):
        run.series(["proc_rss_totl"])


def test_series_of_a_run_that_is_not_stored_are_there_too() -> None:
    run = jobmeter.run(["sleep", "0.3"], keep=False, interval=0.02)
    assert len(run.series(["proc_rss_total"])["seconds"]) >= 1


def test_a_table_needs_its_package_and_says_which(monkeypatch: pytest.MonkeyPatch) -> None:
    run = jobmeter.Run(record("a"))
    for name, method in (("pandas", run.to_pandas), ("polars", run.to_polars)):
        monkeypatch.setitem(sys.modules, name, None)
        with pytest.raises(UsageError, match=f"{name} is not installed. Install it: pip install {name}"):
            method()


@pytest.mark.parametrize("package", ["pandas", "polars"])
def test_series_as_a_table(package: str, stored: tuple[Path, jobmeter.Run]) -> None:
    need_module(package)
    table = getattr(stored[1], f"to_{package}")(["proc_rss_total"])
    values = [None if value != value else value for value in table["proc_rss_total"]]  # pandas has NaN for None
    assert stored[1].series(["proc_rss_total"])["proc_rss_total"] == values


def test_the_card_of_a_notebook_has_figures_and_curves_and_escapes_names(stored: tuple[Path, jobmeter.Run]) -> None:
    card = stored[1]._repr_html_()
    assert "holds completed" in card
    assert "memory peak" in card
    assert "<polyline points='" in card
    dangerous = jobmeter.Run(record("a", "<script>alert(1)</script>"))._repr_html_()
    assert "<script>" not in dangerous
    assert "<polyline" not in dangerous


def test_the_stored_runs_can_be_selected(tmp_path: Path) -> None:
    for name, seconds in (("short", 0.0), ("long", 0.3)):
        jobmeter.run(["sleep", str(seconds)], name=name, labels={"kind": name}, store=str(tmp_path))
    store = jobmeter.open_store(tmp_path)
    assert ["long", "short"] == [run.name for run in store.runs()]
    assert ["short"] == [run.name for run in store.runs(name="sh*")]
    assert ["long"] == [run.name for run in store.runs(where="wall_seconds > 0.2s")]
    assert ["long"] == [run.name for run in store.runs(labels={"kind": "long"})]
    assert [] == list(store.runs(until="1h"))
    assert 2 == len(list(store.runs(since="1h"))) == len(store)
    assert ["long"] == [run.name for run in store.runs(limit=1)]
    assert [] == list(store.runs(status="failed"))
    assert "short" == store.run("short").name


def test_a_selection_that_is_not_valid_is_one_line(tmp_path: Path) -> None:
    store = jobmeter.open_store(tmp_path)
    with pytest.raises(UsageError, match="memory_peek"):
        list(store.runs(where="memory_peek > 4GiB"))
    with pytest.raises(UsageError, match="'someday' is not a time"):
        list(store.runs(since="someday"))
    with pytest.raises(UsageError, match="'fine' is not one of completed"):
        list(store.runs(status="fine"))
    with pytest.raises(UsageError, match="target: '2' is not a share"):
        store.size("a", target=2)


def test_statistics_comparison_and_sizes_are_those_of_the_commands(tmp_path: Path) -> None:
    store = jobmeter.open_store(tmp_path)
    for number in range(6):
        for name, seconds in (("a", 10.0), ("b", 20.0)):
            store.add(record(f"{name}{number}", name) | {"wall_seconds": seconds + number / 10})
    assert [("a", 6), ("b", 6)] == sorted((group.group, group.totals.runs) for group in store.stats())
    (wall,) = [each for each in store.compare("name=a", "name=b") if each.measure.key == "wall_seconds"]
    assert wall.ratio == pytest.approx(20.25 / 10.25)
    assert wall.verdict == "regression"
    (advice,) = store.size("b")
    runtime = advice.requirement().runtime_seconds
    assert runtime is not None
    assert runtime > 20.5


def test_a_run_that_was_measured_elsewhere_can_be_added_once(tmp_path: Path) -> None:
    run = jobmeter.run(["true"], keep=False)
    store = jobmeter.open_store(tmp_path)
    assert run.record == store.add(run).record
    with pytest.raises(UsageError, match="in the store already"):
        store.add(run)
    with pytest.raises(UsageError, match="the record is not valid"):
        store.add({"id": "x"})  # type: ignore[arg-type]


def test_a_process_can_be_measured_for_a_while() -> None:
    process = subprocess.Popen(["sleep", "600"])
    try:
        with jobmeter.attach(process.pid, keep=False, interval=0.02) as attached:
            assert "running" == attached.so_far().status
            wait_for(lambda: attached.so_far().record["provenance"]["samples"] > 2, "samples")
        assert ("detached", 1) == (attached.run.status, attached.run.record["provenance"]["left_running"])
        assert None is process.poll()
        assert attached.run is attached.stop()
    finally:
        process.kill()
        process.wait()


def test_another_thread_can_stop_what_waits_for_a_process() -> None:
    process = subprocess.Popen(["sleep", "600"])
    try:
        attached = jobmeter.attach(process.pid, keep=False)
        runs: list[jobmeter.Run] = []
        waiting = threading.Thread(target=lambda: runs.append(attached.wait()))
        waiting.start()
        run = attached.stop()
        waiting.join(LONG)
        assert ("detached", [run]) == (run.status, runs)
    finally:
        process.kill()
        process.wait()


def test_the_names_of_the_api_are_listed() -> None:
    assert {"measure", "measured", "attach", "open_store", "Run", "Mount", "StoreError"} <= set(dir(jobmeter))
    assert dir(jobmeter) == sorted(jobmeter.__all__)


def test_measure_loads_neither_the_store_nor_what_starts_jobs() -> None:
    code = (
        "import sys, jobmeter\nwith jobmeter.measure(keep=False): pass\n"
        "print([name for name in sys.modules if name.startswith(('sqlalchemy', 'rich', 'jobmeter.store.', 'asyncio', "
        "'pydantic', 'plotly', 'jobmeter.launch', 'jobmeter.workflow'))])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=LONG)
    assert "[]\n" == done.stdout


def test_a_store_that_is_no_longer_used_holds_no_file_open(tmp_path: Path) -> None:
    def open_files() -> list[str]:
        links = [f"/proc/self/fd/{number}" for number in os.listdir("/proc/self/fd")]
        return [os.readlink(link) for link in links if os.path.lexists(link) and str(tmp_path) in os.readlink(link)]

    jobmeter.run(["true"], store=str(tmp_path))
    gc.disable()  # nothing must wait for it
    try:
        for _ in range(3):
            assert 1 == len(list(jobmeter.open_store(tmp_path).runs()))
        assert [] == open_files()
    finally:
        gc.enable()
