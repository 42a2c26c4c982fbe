"""From where on something of a cluster is worth reporting."""

from __future__ import annotations

from typing import NamedTuple


class Thresholds(NamedTuple):
    """Shares are of 1; `seconds` is how long a line must be crossed before anything is said."""

    high: float = 0.9
    low: float = 0.3
    seconds: float = 60.0


DEFAULT = Thresholds()
