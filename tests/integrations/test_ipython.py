"""`%%jobmeter`, in an IPython shell of its own."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import jobmeter
from jobmeter.errors import UsageError
from tests.parts import need_module


@pytest.fixture(scope="module")
def shell() -> Iterator[Any]:
    module = need_module("IPython.core.interactiveshell")
    shell: Any = module.InteractiveShell.instance()
    shell.run_line_magic("load_ext", "jobmeter")
    yield shell
    module.InteractiveShell.clear_instance()


def test_a_cell_is_measured_and_its_run_is_shown_and_stored(shell: Any, tmp_path: Path) -> None:
    cell = "import time\nend = time.thread_time() + 0.2\nwhile time.thread_time() < end: pass\nanswer = 42"
    run = shell.run_cell_magic("jobmeter", f"fit --memory 2g --label team=a --store {tmp_path}", cell)
    assert (42, run) == (shell.user_ns["answer"], shell.user_ns["jobmeter_run"])
    assert run.cpu_seconds == pytest.approx(0.2, rel=0.05, abs=0.02)  # with the compiling of the cell
    assert "fit completed" in run._repr_html_()
    stored = jobmeter.open_store(tmp_path).run("fit")
    assert ({"team": "a"}, {"memory_bytes": 2 << 30}) == (stored.labels, stored.record["requirement"])


def test_a_cell_that_raises_shows_its_own_error_and_has_failed(shell: Any) -> None:
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        assert None is shell.run_cell_magic("jobmeter", "--no-store", "1 / 0")
    assert "ZeroDivisionError" in printed.getvalue()
    assert "failed" == shell.user_ns["jobmeter_run"].status


def test_a_quiet_cell_shows_nothing(shell: Any) -> None:
    assert None is shell.run_cell_magic("jobmeter", "--no-store --quiet", "1 + 1")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("--memory 2elephants", "2elephants"),
        ("--memroy 2g", "%%jobmeter: .*--memroy"),
        ("--cpus many", "%%jobmeter: .*many"),
        ("'unbalanced", "%%jobmeter: No closing quotation"),
    ],
)
def test_a_bad_option_is_one_line_and_the_cell_does_not_run(shell: Any, line: str, message: str) -> None:
    shell.user_ns.pop("ran", None)
    with pytest.raises(UsageError, match=message) as error:
        shell.run_cell_magic("jobmeter", line, "ran = True")
    assert "\n" not in str(error.value)
    assert "ran" not in shell.user_ns
