"""Jobs as a plan has them, with nothing said that does not matter."""

from __future__ import annotations

from typing import Any

from jobmeter.model import Requirement
from jobmeter.workflow.plan import Job, Retry


def a_job(number: int, *blocked_by: int, name: str = "", step: str = "", **requirement: Any) -> Job:
    """The job of this number, which waits for those; `requirement` are the fields of its requirement."""
    return Job(
        number=number,
        name=name or f"job{number}",
        step=step or name or f"job{number}",
        command=["true"],
        script="true",
        directory="/",
        environment={},
        requirement=Requirement(**requirement),
        gpus=requirement.get("gpus") or 0,
        requirement_name=None,
        blocked_by=tuple(blocked_by),
        inputs=(),
        outputs=(),
        retry=Retry(),
        priority=0,
        labels={},
        container=None,
    )


def a_sweep(first: int, count: int, *blocked_by: int, step: str, **requirement: Any) -> list[Job]:
    return [
        a_job(number, *blocked_by, name=f"{step}{number}", step=step, **requirement)
        for number in range(first, first + count)
    ]
