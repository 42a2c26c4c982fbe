from __future__ import annotations

from pathlib import Path

import pytest

from jobmeter.workflow.spec.plan.command import Programs, shell_command
from tests.workflow.spec.writing import job_of, plan_of


@pytest.fixture
def programs(tmp_path: Path) -> Programs:
    """A PATH with three programs of which one cannot be executed."""
    for name in ("tool", "echo", "locked"):
        (tmp_path / name).write_text("#!/bin/sh\n")
        (tmp_path / name).chmod(0o644 if name == "locked" else 0o755)
    return Programs({"PATH": str(tmp_path)})


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("tool", ["tool"]),
        ("tool --in=a.csv  b:c 50% +x ,", ["tool", "--in=a.csv", "b:c", "50%", "+x", ","]),
        ("tool 'a b' \"c d\" e'f'g ''", ["tool", "a b", "c d", "efg", ""]),
        ("tool '$HOME' '{print $1}'", ["tool", "$HOME", "{print $1}"]),
        ("tool é\n", ["tool", "é"]),
        ("./tool x", ["./tool", "x"]),
    ],
)
def test_a_command_that_needs_no_shell_is_executed_directly(
    tmp_path: Path, programs: Programs, script: str, words: list[str]
) -> None:
    assert words == shell_command(script, True, str(tmp_path), {}, programs)


@pytest.mark.parametrize(
    "script",
    [
        "tool | tool",
        "tool > x",
        "tool $HOME",
        'tool "$HOME"',
        'tool "`id`"',
        "tool *.csv",
        "tool ~",
        "tool a\\ b",
        "tool # comment",
        "tool; tool",
        "tool &",
        "tool\ntool",
        "tool {a,b}",
        "tool 'open",
        "A=1 tool",
        "cd /",
        "echo x",
        "if true",
        "missing --x",
        "locked",
        "./missing",
        "(tool)",
        "! tool",
    ],
)
def test_what_a_shell_would_read_otherwise_goes_to_the_shell(tmp_path: Path, programs: Programs, script: str) -> None:
    assert ["/bin/sh", "-c", script] == shell_command(script, True, str(tmp_path), {}, programs)


def test_the_path_of_the_job_is_searched(tmp_path: Path, programs: Programs) -> None:
    assert shell_command("tool", True, "/", {"PATH": "/nowhere"}, programs) == ["/bin/sh", "-c", "tool"]


def test_the_shell_may_be_another_or_none(tmp_path: Path) -> None:
    assert job_of(tmp_path, "shell: /bin/bash").command == ["/bin/bash", "-c", "./run"]
    assert job_of(tmp_path, "shell: false").command == ["./run"]
    assert job_of(tmp_path, "shell: no").command == ["./run"]


@pytest.mark.parametrize(
    ("line", "interpreter"),
    [
        ("#!/bin/bash", ["/bin/bash"]),
        ("#!/bin/bash -e", ["/bin/bash", "-e"]),
        ("#! /usr/bin/env  bash ", ["/usr/bin/env", "bash"]),
        ("#!/usr/bin/env -S bash -e", ["/usr/bin/env", "-S bash -e"]),
        ("#!", ["/bin/ksh"]),
    ],
)
def test_an_invocation_script_may_name_its_interpreter_with_an_argument(
    tmp_path: Path, line: str, interpreter: list[str]
) -> None:
    job = job_of(tmp_path, f'shell: /bin/ksh, invocation_script: "{line}\\nA=1\\n"')
    assert [*interpreter, "-c", f"{line}\nA=1\n ./run"] == job.command


def test_a_list_of_words_is_executed_as_it_is(tmp_path: Path) -> None:
    (job,) = plan_of(tmp_path, "jobs: [{name: a, command: [prog, a b, $X, 3]}]").jobs

    assert job.command == ["prog", "a b", "$X", "3"]
    assert job.script == "prog 'a b' '$X' 3"


def test_the_program_of_a_container_is_not_looked_for_here(tmp_path: Path) -> None:
    (job,) = plan_of(tmp_path, "jobs: [{name: a, command: only-in-there --x, container: img}]").jobs

    assert job.command == ["only-in-there", "--x"]
