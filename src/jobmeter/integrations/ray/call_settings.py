"""How calls are measured, decided in the driver: plain data that goes to the nodes with the code."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from jobmeter.api.options import measure_options

Settings = dict[str, Any]


def call_settings(store: str | os.PathLike[str] | None, labels: Mapping[str, str] | None) -> Settings:
    """The settings, with defaults of the driver's environment and configuration. Raises UsageError if not valid."""
    options = measure_options(None, None, None, None, None, store, keep=True)
    return {
        "store": None if options.store is None else os.path.abspath(options.store),
        "interval": options.interval,
        "labels": {str(key): str(value) for key, value in (labels or {}).items()},
    }
