"""What a test does where a part it needs is not there: a hypervisor, a kernel, a server."""

from __future__ import annotations

import os
from typing import NoReturn

import pytest


def missing(reason: str) -> NoReturn:
    """Skip the test; fail it where JOBMETER_REQUIRE_PARTS says that every part must be there."""
    if os.environ.get("JOBMETER_REQUIRE_PARTS"):
        pytest.fail(f"{reason} (JOBMETER_REQUIRE_PARTS is set)", pytrace=False)
    pytest.skip(reason)
