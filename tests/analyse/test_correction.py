"""What `check --fix` writes: enough, of what was too little, and nothing else."""

from __future__ import annotations

from jobmeter.analyse.correction import corrections
from jobmeter.analyse.overuse import Verdict
from jobmeter.analyse.resource import CPU, MEMORY, RUNTIME, Resource
from jobmeter.model import Requirement

GIB = 2**30


def over(resource: Resource, specified: float, used: float, cause: str | None = None) -> Verdict:
    return Verdict(resource, specified, used, False, True, cause)


def test_only_what_was_over_used_is_corrected() -> None:
    corrected = corrections(
        [over(MEMORY, 8 * GIB, 10 * GIB)], Requirement(4, 12 * GIB, 60.0), Requirement(2, 8 * GIB, 30.0)
    )
    assert Requirement(None, 12 * GIB, None) == corrected


def test_it_is_above_everything_that_was_used_though_less_is_advised() -> None:
    lines = [over(MEMORY, GIB, 2 * GIB), over(MEMORY, GIB, 3 * GIB), over(RUNTIME, 60, 100)]
    corrected = corrections(lines, Requirement(None, GIB, 5.0), Requirement(None, GIB, 60.0))
    assert (corrected.memory_bytes or 0) > 3 * GIB
    assert (corrected.runtime_seconds or 0) > 100


def test_who_met_a_limit_gets_clearly_more() -> None:
    corrected = corrections([over(MEMORY, 8 * GIB, 8 * GIB, "out of memory")], Requirement(), Requirement())
    assert 12 * GIB == corrected.memory_bytes


def test_a_correction_never_requests_less_than_is_requested_already() -> None:
    """The spec may have been corrected by hand since."""
    corrected = corrections([over(MEMORY, GIB, 2 * GIB)], Requirement(None, 3 * GIB), Requirement(None, 64 * GIB))
    assert 64 * GIB == corrected.memory_bytes


def test_without_advice_cpus_are_what_was_used_rounded_up() -> None:
    assert 3 == corrections([over(CPU, 100, 240)], Requirement(), Requirement(1)).cpus
    assert 2 == corrections([over(CPU, 100, 240)], Requirement(2), Requirement(1)).cpus


def test_what_is_advised_is_written_though_more_was_once_usual() -> None:
    """The value is that of `size`, wherever it is enough."""
    met = over(MEMORY, 192 * 2**20, 192 * 2**20, "out of memory")
    advised, today = Requirement(None, 224 * 2**20), Requirement(None, 192 * 2**20)
    assert 224 * 2**20 == corrections([met], advised, today).memory_bytes


def test_a_part_of_a_cpu_stays_a_part() -> None:
    assert 0.3 == corrections([over(CPU, 10, 24)], Requirement(), Requirement(0.1)).cpus
