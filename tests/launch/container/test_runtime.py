"""What engines say of a container that was not started, in jobmeter's words."""

from __future__ import annotations

import pytest

from jobmeter.errors import CommandNotExecutable, CommandNotFound, JobmeterError, LaunchError
from jobmeter.launch.container.client import RequestRefused
from jobmeter.launch.container.runtime import start_refused

RUNC = "OCI runtime create failed: runc create failed: unable to start container process: "
PODMAN = "preparing container 130a1dc94e0a for attach: "


@pytest.mark.parametrize(
    ("reason", "kind", "words"),
    [
        (f'{RUNC}exec: "tool": executable file not found in $PATH: unknown', CommandNotFound, "tool: there is no"),
        (f'{RUNC}exec: "/a/tool": stat /a/tool: no such file or directory: unknown', CommandNotFound, "/a/tool: there"),
        (f'{RUNC}exec: "/etc": permission denied: unknown', CommandNotExecutable, "/etc: cannot be executed"),
        (
            f"{PODMAN}crun: executable file `tool` not found in $PATH: No such file or directory: "
            "OCI runtime attempted to invoke a command that was not found",
            CommandNotFound,
            "tool: there is no",
        ),
        (f"{PODMAN}crun: open executable: Permission denied: OCI permission denied", CommandNotExecutable, "given: "),
        (f"{PODMAN}crun: cgroups in hybrid mode not supported: OCI runtime error", LaunchError, "Podman: crun: "),
    ],
)
def test_a_program_that_cannot_be_run_is_distinguished_from_an_engine_that_cannot(
    reason: str, kind: type[JobmeterError], words: str
) -> None:
    error = start_refused(RequestRefused(f"Podman: {reason}", 500, reason), ["given", "to", "it"])
    assert (kind, True) == (type(error), str(error).startswith(words)), error
