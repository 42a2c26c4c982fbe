"""No failure of the meter is a failure of a task; what is wrong is one line of the worker's log."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import uuid
from pathlib import Path

import pytest

from jobmeter.errors import UsageError
from jobmeter.integrations.celery.installation import places
from tests.celery_workers import SOURCE
from tests.integrations.celery.place import TaskPlace
from tests.parts import need_root

BROKEN = """
class Broken:
    name = "broken"

    def __init_subclass__(cls): pass

    @property
    def measurements(self):
        raise RuntimeError("broken from the start")
"""


def _lines(said: str) -> list[str]:
    return [line.partition("jobmeter: ")[2] for line in said.splitlines() if "jobmeter: " in line]


def test_a_requirement_that_is_not_valid_is_one_line_when_the_worker_starts(place: TaskPlace) -> None:
    worker = place.worker("-c", "1", environment={"BAD_REQUIREMENT": "1"})
    (line,) = _lines(worker.said())
    assert "task tests.integrations.celery.project.requests_lots: memory: 'lots' is not an amount of memory." in line
    assert line.endswith("The task is measured without a requirement.")
    assert "done" == worker.result("requests_lots")
    assert {} == place.run("requests_lots").record["requirement"]


@pytest.mark.parametrize("pool", ["prefork", "threads"])
def test_a_store_that_cannot_be_written_costs_only_the_record(place: TaskPlace, pool: str) -> None:
    place.store.write_text("a file where the store should be")
    worker = place.worker("-c", "1", "-P", pool)
    (line,) = _lines(worker.said())
    assert line.startswith(f"tasks are not measured: {place.store}")
    assert [3, 4] == [worker.result("add", 1, 2), worker.result("add", 2, 2)]
    assert "Traceback" not in worker.said()
    assert len(_lines(worker.said())) <= 2, "each message once"
    place.store.unlink()


def test_a_disk_that_is_full_costs_only_the_record(place: TaskPlace) -> None:
    need_root("to mount a file system")
    place.store.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", place.store], check=True)
    try:
        worker = place.worker("-c", "1")
        assert 3 == worker.result("add", 1, 2)
        with contextlib.suppress(OSError), (place.store / "filler").open("wb", buffering=0) as filler:
            while filler.write(b"1" * 4096):
                pass
        assert list(range(60)) == [worker.result("add", 0, number) for number in range(60)]
        assert any("No space left on device" in line for line in _lines(worker.said()))
        assert len(_lines(worker.said())) <= 3, "each message once"
        (place.store / "filler").unlink()
        assert 3 == worker.result("add", 1, 2)
        # What could not be written was written as soon as there was room.
        assert 62 == len(place.runs("add"))
    finally:
        for worker in place.workers:
            worker.close()
        subprocess.run(["umount", "--lazy", place.store], check=True)


def test_a_collector_that_is_broken_costs_only_its_figures(place: TaskPlace) -> None:
    folder = place.folder / "packages"
    info = folder / "broken_meter-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: broken-meter\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[jobmeter.collectors]\nbroken = broken_meter:Broken\n")
    (folder / "broken_meter.py").write_text(BROKEN)
    source = os.pathsep.join([SOURCE, str(Path(SOURCE).parent), str(folder)])
    environment = {"PYTHONPATH": source, "JOBMETER_MEASUREMENTS": "default,broken_*"}
    worker = place.worker("-c", "1", environment=environment)
    assert 3 == worker.result("add", 1, 2)
    assert "Traceback" not in worker.said()
    assert _lines(worker.said())


def test_a_measurement_that_does_not_exist_is_one_line(place: TaskPlace) -> None:
    worker = place.worker("-c", "1", environment={"JOBMETER_MEASUREMENTS": "proc_rs"})
    assert 3 == worker.result("add", 1, 2)
    assert 4 == worker.result("add", 2, 2)
    (line,) = _lines(worker.said())
    assert "proc_rs" in line
    assert "proc_rss" in line, "what may be meant"


def test_a_store_that_is_a_database_is_one_line(place: TaskPlace) -> None:
    worker = place.worker("-c", "1", environment={"JOBMETER_STORE": "postgresql://localhost/jobs"})
    (line,) = _lines(worker.said())
    assert line.startswith("tasks are not measured: JOBMETER_STORE:")
    assert 3 == worker.result("add", 1, 2)


def test_a_place_for_usage_that_does_not_exist_is_one_line(place: TaskPlace) -> None:
    worker = place.worker("-c", "1", environment={"JOBMETER_CELERY_USAGE": "results"})
    (line,) = _lines(worker.said())
    assert "there is no place 'results'" in line
    assert 3 == worker.result("add", 1, 2)
    with pytest.raises(UsageError, match="'event'"):
        places(["event"])


def test_a_meter_that_fails_at_every_step_fails_no_task(place: TaskPlace) -> None:
    """Block.start and Block.stop raise in the worker, whatever the reason may be."""
    (place.folder / "sabotage.py").write_text(
        "from jobmeter.session.block import Block\n"
        "def fail(*_, **__): raise RuntimeError('sabotage')\n"
        "Block.stop = fail\n"
        "from tests.integrations.celery.project import app\n"
    )
    source = os.pathsep.join([SOURCE, str(Path(SOURCE).parent), str(place.folder)])
    worker = place.worker("-c", "1", project="sabotage", environment={"PYTHONPATH": source})
    assert [3, 4] == [worker.result("add", 1, 2), worker.result("add", 2, 2)]
    with pytest.raises(ValueError, match="always"):
        worker.result("fail")
    (line,) = _lines(worker.said())
    assert "the figures of this task are incomplete: RuntimeError: sabotage" in line


def test_celery_starts_without_loading_jobmeter_more_than_a_command(tmp_path: Path) -> None:
    """The entry point that every `celery` command loads imports nothing dear."""
    code = (
        "import sys, celery.bin.celery\n"
        "print([name for name in sys.modules if name.startswith('jobmeter.') and 'integrations' not in name])"
    )
    environment = {name: value for name, value in os.environ.items() if not name.startswith("JOBMETER_")}
    said = subprocess.run(
        [sys.executable, "-c", code], env={**environment, "PYTHONPATH": SOURCE}, capture_output=True, text=True
    )
    assert "[]\n" == said.stdout, said.stderr


def test_names_of_runs_are_safe_whatever_a_task_id_is(place: TaskPlace) -> None:
    worker = place.worker("-c", "1")
    task_id = f'../{uuid.uuid4()}"\n\\'
    sent = worker.send("add", 1, 2, task_id=task_id)
    assert 3 == sent.get(timeout=100)
    assert task_id == place.run("add").labels["task_id"]
