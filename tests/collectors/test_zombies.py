"""Processes that ended and are not waited for: they have a state, and nothing else."""

from __future__ import annotations

import pytest

from tests.collectors.metering import meter_python

WITH_ZOMBIE = "import os, time\nif not os.fork(): os._exit(0)\ntime.sleep(1.5)"
WITH_ORPHAN = "import os, time\nif not os.fork(): time.sleep(1)"
KEYS = ["proc_state", "proc_processes", "proc_threads_total", "ps_stat"]

both_sources = pytest.mark.parametrize("key", ["proc_state", "ps_stat"])


@both_sources
def test_a_child_that_nobody_waits_for_is_tallied_as_ended(key: str) -> None:
    done = meter_python(WITH_ZOMBIE, KEYS, interval=0.1)
    share = done.record["measurements"][key]["share"]
    # One of two processes, but for the time that the interpreter takes to start.
    assert 0 < share["Z"] <= 0.5
    assert sum(share.values()) == pytest.approx(1, abs=0.01)


def test_a_zombie_is_no_process_and_has_no_thread() -> None:
    done = meter_python(WITH_ZOMBIE, KEYS, interval=0.1)
    asleep = [sample.values for sample in done.samples if "Z" in sample.values.get("proc_state", {})]  # type: ignore[operator]
    assert asleep
    assert {(1, 1)} == {(values["proc_processes"], values["proc_threads_total"]) for values in asleep[1:]}


@both_sources
@pytest.mark.parametrize(
    "program", [pytest.param("import time; time.sleep(0.5)", id="alone"), pytest.param(WITH_ORPHAN, id="orphan")]
)
def test_the_main_process_at_its_end_is_no_zombie_of_the_job(key: str, program: str) -> None:
    done = meter_python(program, KEYS, interval=0.1)
    assert "Z" not in done.record["measurements"][key]["share"]
