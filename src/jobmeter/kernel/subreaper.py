"""The subreaper: the process that orphans below it become children of, in place of init (prctl(2))."""

from __future__ import annotations

import sys

_SET_CHILD_SUBREAPER = 36


def become_subreaper() -> bool:
    """Adopt the orphans below this process from now on; False where the system cannot: they go to init as usual."""
    if sys.platform != "linux":
        return False
    import ctypes

    return bool(ctypes.CDLL(None).prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0)
