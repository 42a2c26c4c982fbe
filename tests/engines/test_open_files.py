from __future__ import annotations

import resource
import subprocess
import sys
from collections.abc import Iterator

import pytest

from jobmeter.engines.open_files import Descriptors

GIVEN = 256


@pytest.fixture
def few() -> Iterator[int]:
    """A limit lower than the system would allow; returns that."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (GIVEN, before[1]))
    yield before[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


def soft_limit(pid: int = 0) -> int:
    return resource.prlimit(pid, resource.RLIMIT_NOFILE)[0]


def test_the_runner_may_hold_more_files_open_until_its_end(few: int) -> None:
    descriptors = Descriptors()
    assert soft_limit() > GIVEN
    assert soft_limit() in (few, 65536)
    assert descriptors.jobs > 1
    descriptors.restore()
    assert GIVEN == soft_limit()


def test_its_jobs_have_the_limit_that_it_was_given(few: int) -> None:
    descriptors = Descriptors()
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as job:
        assert soft_limit(job.pid) > GIVEN
        descriptors.restore_limit(job.pid)
        assert GIVEN == soft_limit(job.pid)
        job.communicate(b"\n")
    descriptors.restore()


def test_where_few_are_allowed_one_job_at_a_time_still_runs() -> None:
    code = (
        "import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (200, 200))\n"
        "from jobmeter.engines.open_files import Descriptors; print(Descriptors().jobs)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "1\n" == done.stdout
