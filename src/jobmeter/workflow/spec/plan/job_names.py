"""Which names jobs may have: files are named after a job, and tables show its name."""

from __future__ import annotations

import re

from jobmeter.errors import quote
from jobmeter.workflow.spec.read.spec_errors import Problem

LONGEST = 235
"""The most bytes of a name: file systems allow 255, and we need some for the attempt and the file extension."""
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")


def check_name(name: str) -> None:
    """Raise Problem if a job cannot have this name."""
    if not name.strip():
        raise Problem("the name is empty")
    if "/" in name:
        raise Problem(f"{quote(name)} has a slash, and files are named after the job. Use _ or - instead.")
    if name in (".", ".."):
        raise Problem(f"{quote(name)} cannot be a name, because files are named after the job")
    if _CONTROL.search(name):
        raise Problem(f"{quote(name)} has a control character")
    if len(name.encode()) > LONGEST:
        raise Problem(f"{quote(name)} is longer than {LONGEST} bytes, and files are named after the job")
