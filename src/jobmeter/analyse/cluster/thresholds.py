"""The thresholds from which on something about a cluster is reported."""

from __future__ import annotations

from typing import NamedTuple


class Thresholds(NamedTuple):
    """`high` and `low` are shares of 1; `seconds` is how long one must be crossed before it is reported."""

    high: float = 0.9
    low: float = 0.3
    seconds: float = 60.0


DEFAULT = Thresholds()
