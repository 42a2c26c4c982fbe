"""How a container ended, by the engine's word and the kernel's."""

from __future__ import annotations

import os
import signal

from jobmeter.analyse.outcome import outcome
from jobmeter.kernel.cgroup.container import ContainerGroup
from jobmeter.launch.container.supervisor import ContainerSupervisor
from jobmeter.model import Outcome

_AT_THE_LIMIT = 0.99


def judge_end(supervisor: ContainerSupervisor, group: ContainerGroup | None, memory_limit: int | None) -> Outcome:
    """The outcome of a container that ended; of one that nobody tells of, `lost`."""
    kills = (group.oom_kills() if group else None) or 0
    if not kills and (supervisor.state is not None and supervisor.state.oom_killed):
        kills = 1
    if not kills and _killed_at_its_limit(supervisor, group, memory_limit):
        kills = 1
    return outcome(supervisor.wait_status, ended_by=supervisor.ended_by, oom_kills=kills)


def _killed_at_its_limit(supervisor: ContainerSupervisor, group: ContainerGroup | None, limit: int | None) -> bool:
    """Podman on cgroup v1 does not tell: a kill that was not ours, of a container that held all it may."""
    status, peak = supervisor.wait_status, group.memory_peak() if group else None
    killed = status is not None and os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
    held_all = limit is not None and peak is not None and peak >= limit * _AT_THE_LIMIT
    return killed and held_all and supervisor.ended_by is None
