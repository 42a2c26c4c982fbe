"""Finding the program that a command names, as a shell would, and the error when it cannot be executed."""

from __future__ import annotations

import errno
import os

from jobmeter.errors import CommandNotExecutable, CommandNotFound, JobmeterError, LaunchError


def find_program(name: str, environment: dict[str, str]) -> str:
    """The path to execute for the first word of a command."""
    if not name:
        raise CommandNotFound("'': the command is empty")
    if "/" in name:
        return name
    refused = None
    for directory in os.get_exec_path(environment):
        path = os.path.join(directory or ".", name)
        if os.path.isfile(path):
            if os.access(path, os.X_OK):
                return path
            refused = refused or path
    if refused is not None:
        raise CommandNotExecutable(f"{refused}: permission denied (not executable)")
    raise CommandNotFound(f"{name}: command not found")


def with_interpreter(path: str, command: list[str], directory: str | None) -> tuple[str, list[str]]:
    """The path and arguments to execute for `command`: sh runs a text without a `#!` line, as in every shell."""
    file_path = os.path.join(directory or "", path)
    if not os.access(file_path, os.X_OK):
        return path, command  # the kernel will report why
    try:
        with open(file_path, "rb") as file:
            beginning = file.read(256)
    except OSError:
        return path, command  # a directory, or a program that may be executed but not read
    if beginning.startswith((b"#!", b"\x7fELF")) or b"\0" in beginning:
        return path, command
    return "/bin/sh", ["sh", path, *command[1:]]


def refusal(path: str, code: int, directory: str | None = None) -> JobmeterError:
    """The error for the code that execve(2) returned for `path`, in this working directory."""
    file_path = os.path.join(directory or "", path)
    if code == errno.ENOENT and os.path.exists(file_path):
        # The file exists: its interpreter is missing.
        return CommandNotFound(f"{path}: its interpreter (the first line's #! program, or the loader) is missing")
    if code in (errno.ENOENT, errno.ENOTDIR):
        return CommandNotFound(f"{path}: no such file or directory")
    if code == errno.EACCES and os.path.isdir(file_path):
        return CommandNotExecutable(f"{path}: is a directory")
    if code in (errno.EACCES, errno.EPERM):
        return CommandNotExecutable(f"{path}: permission denied (not executable)")
    if code in (errno.EAGAIN, errno.ENOMEM):
        return LaunchError(f"{path}: {os.strerror(code)}")
    return CommandNotExecutable(f"{path}: {os.strerror(code)}")
