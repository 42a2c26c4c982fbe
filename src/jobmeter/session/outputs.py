"""The files that a job has to make: a job without them has failed, whatever its exit code."""

from __future__ import annotations

import os
from collections.abc import Sequence

from jobmeter.model import Outcome, Status
from jobmeter.session.measuring import Measuring


def check_outputs(outcome: Outcome, outputs: Sequence[str], measuring: Measuring) -> Outcome:
    """The outcome; `failed` if the job completed without making all its outputs. The record names those missing."""
    if outcome.status != Status.COMPLETED:
        return outcome
    missing = [path for path in outputs if not os.path.exists(path)]
    if not missing:
        return outcome
    measuring.provenance["missing_outputs"] = missing
    return outcome._replace(status=Status.FAILED)
