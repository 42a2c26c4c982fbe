from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from jobmeter.errors import CommandNotExecutable, CommandNotFound, JobmeterError, LaunchError
from jobmeter.launch.program import find_program, refusal


def program(path: Path, mode: int = 0o755) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(mode)
    return str(path)


def searching(*folders: Path | str) -> dict[str, str]:
    return {"PATH": os.pathsep.join(map(str, folders))}


def test_a_program_is_the_first_of_its_name_on_the_path(tmp_path: Path) -> None:
    first, second = program(tmp_path / "a" / "tool"), program(tmp_path / "b" / "tool")
    paths = [
        find_program("tool", searching(*order))
        for order in ((tmp_path / "a", tmp_path / "b"), (tmp_path / "b", tmp_path / "a"))
    ]
    assert [first, second] == paths


def test_the_path_searched_is_the_job_s_and_not_jobmeter_s_own(tmp_path: Path) -> None:
    with pytest.raises(CommandNotFound, match="sh: command not found"):
        find_program("sh", searching(tmp_path))


def test_what_cannot_be_executed_is_passed_over_for_what_can(tmp_path: Path) -> None:
    program(tmp_path / "a" / "tool", 0o644)
    (tmp_path / "b" / "tool").mkdir(parents=True)
    third = program(tmp_path / "c" / "tool")
    assert third == find_program("tool", searching(tmp_path / "a", tmp_path / "b", tmp_path / "c"))


def test_a_program_found_and_not_executable_is_distinguished_from_one_not_found(tmp_path: Path) -> None:
    path = program(tmp_path / "tool", 0o644)
    with pytest.raises(CommandNotExecutable) as refused:
        find_program("tool", searching(tmp_path))
    assert (f"{path}: permission denied (not executable)", 126) == (str(refused.value), refused.value.exit_code)


def test_a_folder_of_that_name_is_no_program(tmp_path: Path) -> None:
    (tmp_path / "tool").mkdir()
    with pytest.raises(CommandNotFound) as refused:
        find_program("tool", searching(tmp_path))
    assert ("tool: command not found", 127) == (str(refused.value), refused.value.exit_code)


@pytest.mark.parametrize("name", ["./tool", "/no/such/tool", "bin/"])
def test_a_name_with_a_slash_is_a_path_and_not_searched_for(tmp_path: Path, name: str) -> None:
    program(tmp_path / "tool")
    assert name == find_program(name, searching(tmp_path))


def test_an_empty_entry_of_the_path_is_the_present_folder() -> None:
    name = os.path.basename(__file__)
    folder = os.getcwd()
    try:
        os.chdir(os.path.dirname(__file__))
        with pytest.raises(CommandNotExecutable, match=rf"^\./{name}: "):
            find_program(name, {"PATH": ":/nowhere"})
    finally:
        os.chdir(folder)


def test_an_empty_command_is_not_found() -> None:
    with pytest.raises(CommandNotFound, match="the command is empty"):
        find_program("", searching("/bin"))


@pytest.mark.parametrize(
    ("code", "kind", "words"),
    [
        (errno.ENOENT, CommandNotFound, "no such file or directory"),
        (errno.ENOTDIR, CommandNotFound, "no such file or directory"),
        (errno.EACCES, CommandNotExecutable, "permission denied"),
        (errno.EPERM, CommandNotExecutable, "permission denied"),
        (errno.ENOEXEC, CommandNotExecutable, "Exec format error"),
        (errno.E2BIG, CommandNotExecutable, "Argument list too long"),
        (errno.EAGAIN, LaunchError, "Resource temporarily unavailable"),
        (errno.ENOMEM, LaunchError, "Cannot allocate memory"),
    ],
)
def test_what_the_kernel_refused_becomes_an_error_with_the_shell_s_code(
    code: int, kind: type[JobmeterError], words: str
) -> None:
    error = refusal("/no/such/tool", code)
    assert (kind, True, {CommandNotFound: 127, CommandNotExecutable: 126, LaunchError: 125}[kind]) == (
        type(error),
        str(error).startswith(f"/no/such/tool: {words}"),
        error.exit_code,
    )


def test_a_script_that_is_there_and_not_found_lacks_its_interpreter(tmp_path: Path) -> None:
    path = program(tmp_path / "tool")
    error = refusal(path, errno.ENOENT)
    assert (CommandNotFound, True) == (type(error), "its interpreter" in str(error))


def test_a_folder_is_refused_as_one(tmp_path: Path) -> None:
    error = refusal(str(tmp_path), errno.EACCES)
    assert (CommandNotExecutable, f"{tmp_path}: is a directory") == (type(error), str(error))


def test_a_relative_program_is_looked_at_where_it_was_to_run(tmp_path: Path) -> None:
    program(tmp_path / "tool")
    error = refusal("./tool", errno.ENOENT, str(tmp_path))
    assert (CommandNotFound, True) == (type(error), "its interpreter" in str(error))
    assert "no such file" in str(refusal("./tool", errno.ENOENT, str(tmp_path / "elsewhere")))
