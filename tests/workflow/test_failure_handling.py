from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from jobmeter.workflow.failure_handling import recovery_job
from jobmeter.workflow.plan import Job
from tests.workflow.jobs import a_job


def script_job(folder: Path, script: str) -> Job:
    """The recovery script of a job that runs in this folder."""
    return recovery_job(a_job(1)._replace(directory=str(folder)), script, 2)


@pytest.mark.parametrize("script", ["echo x\\", "\\", '"', "'", '""', "#", "$(", "~", "x\\\n"])
def test_a_script_that_is_not_a_list_of_words_goes_to_the_shell(tmp_path: Path, script: str) -> None:
    assert ["/bin/sh", "-c", script] == script_job(tmp_path, script).command


@pytest.mark.parametrize(
    ("line", "interpreter"),
    [
        ("#!/bin/bash", ["/bin/bash"]),
        ("#! /bin/bash\t-e ", ["/bin/bash", "-e"]),
        ("#!/usr/bin/env bash", ["/usr/bin/env", "bash"]),
        ("#!/usr/bin/env -S bash -e", ["/usr/bin/env", "-S bash -e"]),
        ("#!", ["/bin/sh"]),
        ("# no interpreter", ["/bin/sh"]),
    ],
)
def test_the_first_line_of_a_file_that_is_not_executable_is_read_as_the_kernel_does(
    tmp_path: Path, line: str, interpreter: list[str]
) -> None:
    path = tmp_path / "repair"
    path.write_text(f'{line}\necho "$0 $1"\n')
    command = script_job(tmp_path, "repair twice").command
    assert [*interpreter, str(path), "twice"] == command
    assert f"{path} twice\n" == subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout


def test_a_script_requests_nothing_of_what_its_job_requests() -> None:
    script = recovery_job(a_job(1, cpus=2, gpus=1)._replace(custom={"tpu": 4.0}), "true", 2)
    assert ((), 0, {}) == (tuple(script.requirement.requested()), script.gpus, script.custom)
