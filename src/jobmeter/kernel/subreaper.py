"""The subreaper: the process that adopts the orphans among its descendants, in place of init (prctl(2))."""

from __future__ import annotations

import sys

from jobmeter.kernel import libc

_SET_CHILD_SUBREAPER = 36


def become_subreaper() -> bool:
    """Adopt all orphaned descendants from now on; False if the system cannot: then init adopts them, as usual."""
    if sys.platform != "linux":
        return False
    return libc.call("prctl", _SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0
