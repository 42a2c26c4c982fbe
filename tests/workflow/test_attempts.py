from __future__ import annotations

from jobmeter.store import Selection, open_store
from jobmeter.workflow.attempts import latest, of_record, of_row
from tests.workflow.attempted import an_attempt
from tests.workflow.live import Place

SPEC = """
name: both
jobs:
  - {name: one, command: "exit 3", resource_requirements: {cpus: 0.5, memory: 100m, runtime: 1m}}
"""


def test_the_store_and_the_record_agree_on_an_attempt(place: Place) -> None:
    place.run(SPEC)
    store = open_store(str(place.store), print)
    (row,) = store.runs(Selection(workflow="both"))
    from_record = of_record(store.record(row["id"]))
    assert from_record == of_row(row)
    assert ("one", "failed", 3, 1) == (
        from_record.name,
        from_record.status,
        from_record.outcome.exit_code,
        from_record.attempt,
    )
    assert (0.5, 100 * 2**20, 60) == (from_record.cpus, from_record.memory_bytes, from_record.runtime_seconds)
    assert from_record.fingerprint


def test_of_a_job_s_attempts_the_last_counts() -> None:
    first, second = an_attempt(1, "oom", second=9), an_attempt(1, attempt=2, second=1)
    other = an_attempt(2)
    assert {1: second, 2: other} == latest([second, other, first])


def test_of_two_runners_that_began_the_same_attempt_the_later_counts() -> None:
    killed, after = an_attempt(1, "lost", second=1), an_attempt(1, second=2)
    assert {1: after} == latest([after, killed])


def test_an_attempt_as_a_row_is_the_row_it_came_from() -> None:
    row = {
        "id": "r", "name": "train", "status": "oom", "signal": 9, "started": "2026-01-31T12:00:00.000Z",
        "wall_seconds": 2.0, "memory_peak_bytes": 5, "memory_quality": "exact", "requirement_memory_bytes": 4,
        "workflow_job": {"job_id": 3, "step": "train", "attempt": 2},
    }  # fmt: skip
    assert row == of_row(row).as_row()
