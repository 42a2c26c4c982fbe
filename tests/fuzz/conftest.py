from __future__ import annotations

import pytest

from tests.fuzz.commands import TRIED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print how many cases were tried; with pytest-xdist the workers have counted, and this says nothing."""
    if TRIED:
        counts = ", ".join(f"{count} {kind}" for kind, count in TRIED.items())
        terminalreporter.write_line(f"cases tried: {sum(TRIED.values())} ({counts})")
