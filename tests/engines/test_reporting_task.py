"""Output that is sent to the runner: complete and in its place, whoever sends it."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

from jobmeter.engines.contract import Ended
from jobmeter.engines.reporting_task import ReportedTask, ReportingTask
from jobmeter.journal.writer import JournalFile
from tests.engines.test_contract import TASK

FAR = ("/nowhere/marker", "of another machine")


class Kept(ReportingTask):
    """Keeps its reports. While it makes the first, another thread sends output, too."""

    def __init__(self, marker: tuple[str, str] = FAR) -> None:
        super().__init__(TASK, marker)
        self.reports: list[list[Any]] = []
        self.other = threading.Thread(target=self.send_output)

    def report(self, report: list[Any]) -> None:
        self.reports.append(report)
        if len(self.reports) == 1:
            self.other.start()
            self.other.join(timeout=0.3)  # it has to wait for us, and else would be over by then


def arrived(task: Kept, folder: Path) -> bytes:
    """What the runner has of its stdout."""
    logs = {"stdout": f"{folder}/out", "stderr": f"{folder}/err"}
    reported = ReportedTask(3, logs)
    journal = JournalFile(f"{folder}/journal/file.jsonl", {})
    for report in task.reports:
        reported.take(report, journal)
    return (folder / "out").read_bytes()


def test_a_task_that_sees_the_files_of_its_runner_writes_there_itself(tmp_path: Path) -> None:
    (tmp_path / "marker").write_text("the same")
    task = Kept((f"{tmp_path}/marker", "the same"))
    assert TASK._replace(number=9) == task.local_task(9)


def test_output_that_two_threads_send_at_a_time_arrives_as_it_was(tmp_path: Path) -> None:
    task = Kept()
    local = task.local_task(1)
    content = b"".join(b"%9d\n" % number for number in range(200_000))
    Path(local.stdout).write_bytes(content)
    task.send_output()
    task.other.join()
    assert content == arrived(task, tmp_path)
    task.end(Ended(1, None, "over"))
    assert ["ended", None, "over"] == task.reports[-1]
    assert not Path(local.stdout).parent.exists()
