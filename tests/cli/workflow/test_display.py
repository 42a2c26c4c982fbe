"""The display on a terminal: what stands there while jobs run, and that nothing stays behind."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator

import pytest

from tests.terminal import Terminal
from tests.waiting import LONG
from tests.workflow.live import Place

SPEC = """
name: Demo
jobs:
- {name: "quick_[red]", command: "true"}
- {name: slow, command: "sleep 60", blocked_by: ["quick_[red]"], resource_requirements: {cpus: 1, memory: 1g}}
- {name: last, command: "true", blocked_by: [slow]}
"""


@pytest.fixture
def terminal(place: Place) -> Iterator[Terminal]:
    shown = Terminal(place.command("run", str(place.write(SPEC))), place.environment())
    yield shown
    shown.close()


def test_counts_and_running_jobs_stand_there(terminal: Terminal) -> None:
    terminal.wait_for("1 completed  1 running  1 waiting")
    terminal.wait_for("slow ")
    assert "Demo: 3 jobs" in terminal.plain


def test_a_signal_ends_it_and_the_terminal_is_as_before(terminal: Terminal) -> None:
    terminal.wait_for("slow ")
    assert 128 + signal.SIGINT == terminal.end(signal.SIGINT)
    terminal.wait_for("was stopped")
    before, _, summary = terminal.written.partition("jobmeter: workflow Demo")
    # The cursor is back, and the display was wiped before the summary came.
    assert before.rindex("\x1b[?25h") > before.rindex("\x1b[?25l")
    assert before.endswith("\x1b[1A\x1b[2K")
    assert "\x1b[" not in summary


def test_a_terminal_that_goes_away_costs_nothing_that_is_kept(place: Place, terminal: Terminal) -> None:
    terminal.wait_for("slow ")
    terminal.hang_up()
    time.sleep(0.5)  # the display writes into the void
    assert 128 + signal.SIGHUP == terminal.end(signal.SIGHUP)
    done = place.call("status", "--json")
    assert '"cancelled": 1' in done.stdout, done.stdout


def test_quiet_shows_nothing(place: Place) -> None:
    shown = Terminal(place.command("run", "--quiet", str(place.write(SPEC.replace("60", "0.5")))), place.environment())
    assert 0 == shown.process.wait(LONG)
    assert "" == shown.written
    shown.close()
