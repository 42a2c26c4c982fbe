"""Files that a job is to make: without them its work is not done, whatever its exit code says."""

from __future__ import annotations

import os
from collections.abc import Sequence

from jobmeter.model import Outcome, Status
from jobmeter.session.measuring import Measuring


def check_outputs(outcome: Outcome, outputs: Sequence[str], measuring: Measuring) -> Outcome:
    """The outcome, `failed` for a job that completed and did not make all its outputs; its record names them."""
    if outcome.status != Status.COMPLETED:
        return outcome
    missing = [path for path in outputs if not os.path.exists(path)]
    if not missing:
        return outcome
    measuring.provenance["missing_outputs"] = missing
    return outcome._replace(status=Status.FAILED)
