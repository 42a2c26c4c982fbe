"""What a test does where a part it needs is not there: root, a kernel, a server, a package."""

from __future__ import annotations

import importlib
import os
from typing import Any, NoReturn

import pytest


def is_every_part_required() -> bool:
    """Whether JOBMETER_REQUIRE_PARTS says that every part must be there: then nothing is skipped for want of one."""
    return bool(os.environ.get("JOBMETER_REQUIRE_PARTS"))


def missing(reason: str) -> NoReturn:
    """Skip the test; fail it where every part must be there."""
    if is_every_part_required():
        pytest.fail(f"{reason} (JOBMETER_REQUIRE_PARTS is set)", pytrace=False)
    pytest.skip(reason)


def need_root(purpose: str) -> None:
    """Skip the test unless root runs it; `purpose` says what for, as in `to mount a file system`."""
    if os.geteuid() != 0:
        missing(f"needs root, {purpose}")


def need_module(name: str) -> Any:
    """The module, which an ordinary installation of the tests has."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        missing(f"needs {name}: {error}")


def unless(reason: str) -> pytest.MarkDecorator:
    """A mark that skips the test for this reason, if there is one; where every part must be there, it runs."""
    return pytest.mark.skipif(bool(reason) and not is_every_part_required(), reason=reason or "all is there")
