"""The subreaper: the process that orphans below it become children of, in place of init (prctl(2))."""

from __future__ import annotations

import sys

from jobmeter.kernel import libc

_SET_CHILD_SUBREAPER = 36


def become_subreaper() -> bool:
    """Adopt the orphans below this process from now on; False where the system cannot: they go to init as usual."""
    if sys.platform != "linux":
        return False
    return libc.call("prctl", _SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0
