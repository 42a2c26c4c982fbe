from __future__ import annotations

import queue
from pathlib import Path

import pytest

from jobmeter.errors import UsageError
from jobmeter.workflow.control import CancelJob, ControlPipe, send_requests
from tests.waiting import LONG


def test_requests_arrive_and_what_is_none_is_skipped(tmp_path: Path) -> None:
    path = tmp_path / "control"
    received: queue.Queue[CancelJob] = queue.Queue()
    with ControlPipe(str(path), received.put):
        with path.open("wb") as pipe:
            pipe.write(b'\n{"cancel": "x"}\nnot json\n[]\n{"pause": 3, "request": "a"}\n')
        send_requests(str(path), [CancelJob(3, "a"), CancelJob(4, "a")])
        assert [CancelJob(3, "a"), CancelJob(4, "a")] == [received.get(timeout=LONG) for _ in range(2)]
    assert not path.exists()
    assert received.empty()


def test_a_pipe_that_a_killed_runner_left_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "control"
    path.write_text("")
    received: queue.Queue[CancelJob] = queue.Queue()
    with ControlPipe(str(path), received.put):
        send_requests(str(path), [CancelJob(1, "a")])
        assert CancelJob(1, "a") == received.get(timeout=LONG)


def test_where_there_can_be_no_pipe_the_workflow_runs_without(tmp_path: Path) -> None:
    path = str(tmp_path / "missing" / "control")
    with ControlPipe(path, print), pytest.raises(UsageError, match="takes no requests: No such file"):
        send_requests(path, [CancelJob(1)])


def test_a_file_in_its_place_is_not_written_to(tmp_path: Path) -> None:
    path = tmp_path / "control"
    path.write_text("mine")
    with pytest.raises(UsageError, match="not a pipe"):
        send_requests(str(path), [CancelJob(1)])
    assert "mine" == path.read_text()
