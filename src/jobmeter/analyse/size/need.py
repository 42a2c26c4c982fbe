"""What one run needed of one resource: the input that the advice is learned from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

Features = Mapping[str, float]
"""Numbers that are known of a run before it starts, by name: bytes of its inputs, a mesh, a parameter of a sweep."""

NO_FEATURES: Features = {}


class Need(NamedTuple):
    """One run: how much it needed, and for how long its request is held."""

    amount: float  # above 0
    features: Features = NO_FEATURES
    seconds: float = 1.0  # 1 if the resource is time: a second that is requested and not used costs a second
    requested: float | None = None
