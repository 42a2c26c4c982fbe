from __future__ import annotations

import os
import signal
from pathlib import Path

from jobmeter.kernel.machine import THIS_MACHINE
from jobmeter.launch.leftover_jobs import LeftJob, end_jobs, identity_of
from tests.launch.owned import owned
from tests.workflow.live import Place, lives


def test_a_job_whose_owner_is_gone_ends_with_its_children_and_daemons(place: Place) -> None:
    daemon = f"setsid sh -c 'echo $$ >>{place.folder}/pids; exec sleep 60' & "
    with owned(f"{daemon} echo $$ >>{place.folder}/pids; sleep 60 & echo $! >>{place.folder}/pids; wait") as jobs:
        pids = [int(line) for line in place.await_lines("pids", 3)]
        jobs.kill_owner()
        assert all(map(lives, pids))
        assert 1 == end_jobs(THIS_MACHINE, jobs.jobs)
        assert not any(map(lives, [*pids, jobs.shepherds[0].pid]))


def test_a_job_that_ignores_sigterm_is_killed_and_the_others_can_handle_it(place: Place) -> None:
    stubborn = f"trap '' TERM; echo $$ >>{place.folder}/pids; while :; do sleep 0.1; done"
    gentle = (
        f"trap 'echo bye >>{place.folder}/said; exit' TERM; echo $$ >>{place.folder}/pids; while :; do sleep 0.1; done"
    )
    with owned(stubborn, gentle) as jobs:
        pids = [int(line) for line in place.await_lines("pids", 2)]
        jobs.kill_owner()
        assert 2 == end_jobs(THIS_MACHINE, jobs.jobs, grace=1.0)
        assert not any(map(lives, pids))
    assert ["bye"] == place.lines("said")


def test_one_that_is_stopped_ends_too(place: Place) -> None:
    with owned(f"echo $$ >{place.folder}/pid; exec sleep 60") as jobs:
        pid = place.await_running("pid")
        os.kill(pid, signal.SIGSTOP)
        jobs.kill_owner()
        assert 1 == end_jobs(THIS_MACHINE, jobs.jobs)
        assert not lives(pid)


def test_a_process_that_has_the_pid_of_a_shepherd_of_old_is_let_be(place: Place) -> None:
    with owned(f"echo $$ >{place.folder}/pid; exec sleep 60") as jobs:
        pid = place.await_running("pid")
        (shepherd,) = jobs.shepherds
        assert 0 == end_jobs(THIS_MACHINE, [LeftJob(shepherd._replace(start=shepherd.start - 1))])
        assert lives(pid)


def test_shepherds_that_are_gone_are_none(tmp_path: Path) -> None:
    with owned("true") as jobs:
        jobs.kill_owner()
        end_jobs(THIS_MACHINE, jobs.jobs)
        assert 0 == end_jobs(THIS_MACHINE, jobs.jobs)
        assert identity_of(THIS_MACHINE, jobs.shepherds[0].pid) is None


def test_a_job_whose_shepherd_was_killed_too_ends_with_what_it_orphaned(place: Place) -> None:
    """Known by its main process and by the session that the shepherd began."""
    orphan = f"(sh -c 'echo $$ >>{place.folder}/pids; exec sleep 60' &)"
    with owned(f"echo $$ >>{place.folder}/pids; {orphan}; sleep 60") as jobs:
        pids = [int(line) for line in place.await_lines("pids", 2)]
        jobs.kill_shepherds()
        jobs.kill_owner()
        assert all(map(lives, pids))
        assert 1 == end_jobs(THIS_MACHINE, jobs.jobs)
        assert not any(map(lives, pids))


def test_of_a_job_that_is_over_nothing_is_found_by_the_number_of_its_session(place: Place) -> None:
    """A stranger's session may have that number by now; nothing of the job is left to vouch for it."""
    with owned(f"echo $$ >{place.folder}/pid; exec sleep 60") as jobs:
        pid = place.await_running("pid")
        jobs.kill_shepherds()
        jobs.kill_owner()
        shepherd = jobs.shepherds[0]
        assert 0 == end_jobs(THIS_MACHINE, [LeftJob(shepherd._replace(start=shepherd.start - 1))])
        assert lives(pid)
