from __future__ import annotations

from jobmeter.workflow.trials import with_trials
from tests.workflow.jobs import a_job, a_sweep


def test_a_sweep_is_made_longer_and_what_collects_it_waits_for_all_of_it() -> None:
    jobs = [a_job(1), *a_sweep(2, 3, 1, step="s"), a_job(5, 2, 3, 4)]
    planned = {job.number: job for job in with_trials(jobs, 7)}
    assert [1, 2, 3, 4, 5, 6, 7, 8, 9] == sorted(planned)
    assert ["s2", "s3", "s4", "s2"] == [planned[number].name for number in (6, 7, 8, 9)]
    assert {(1,)} == {planned[number].blocked_by for number in (2, 3, 4, 6, 7, 8, 9)}
    assert (2, 3, 4, 6, 7, 8, 9) == planned[5].blocked_by


def test_a_sweep_is_made_shorter() -> None:
    jobs = [*a_sweep(1, 5, step="s"), a_job(6, 1, 2, 3, 4, 5)]
    planned = with_trials(jobs, 2)
    assert [1, 2, 6] == [job.number for job in planned]
    assert (1, 2) == planned[-1].blocked_by


def test_sweeps_whose_jobs_follow_each_other_do_so_each_time() -> None:
    jobs = [*a_sweep(1, 2, step="prep"), a_job(3, 1, name="t1", step="t"), a_job(4, 2, name="t2", step="t")]
    planned = {job.number: job for job in with_trials(jobs, 4)}
    assert {1: (), 2: (), 3: (1,), 4: (2,), 5: (), 6: (), 7: (5,), 8: (6,)} == {
        number: job.blocked_by for number, job in planned.items()
    }


def test_without_sweeps_nothing_changes() -> None:
    jobs = [a_job(1), a_job(2, 1)]
    assert jobs == with_trials(jobs, 100)
