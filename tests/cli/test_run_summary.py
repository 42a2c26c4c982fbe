"""What `jobmeter run` ends with, on a terminal and in a pipe."""

from __future__ import annotations

import sys

from tests.running import environment, jobmeter
from tests.terminal import Terminal

RUN = ("run", "--memory", "1g", "--cpus", "2", "--", "true")


def memory_lines(lines: list[str]) -> list[str]:
    """The line of the memory, and what goes on below it."""
    first = next(number for number, line in enumerate(lines) if line.startswith("  memory "))
    last = next(number for number, line in enumerate(lines) if line.startswith("  disk "))
    return lines[first:last]


def test_a_narrow_terminal_breaks_lines_between_words_below_their_content() -> None:
    shown = Terminal([sys.executable, "-m", "jobmeter", *RUN], environment(), columns=50).finish()
    assert shown.code == 0
    first, *others = memory_lines(shown.text.splitlines())
    assert others
    assert all(line.startswith(" " * 13) and line[13] != " " for line in others)
    assert all(len(line) <= 50 for line in (first, *others))
    assert all(line.count("[") == line.count("]") for line in (first, *others)), "a quality stays with its source"


def test_a_pipe_has_each_subject_on_one_line() -> None:
    done = jobmeter(*RUN)
    (line,) = memory_lines(done.stderr.splitlines())
    assert "of the 1 GiB requested" in line


def test_the_list_of_commands_fits_a_terminal_of_80_columns() -> None:
    printed = jobmeter("--help").stdout.splitlines()
    assert "Commands:" in printed
    assert [line for line in printed if len(line) > 80] == []
