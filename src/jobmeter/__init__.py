"""jobmeter tells what a job really used, and what to ask for next time."""

from __future__ import annotations

from typing import TYPE_CHECKING

__version__ = "0.1.0"

if TYPE_CHECKING:
    from jobmeter.api import Run, attach, run, start
    from jobmeter.collectors.contract import Collector, Readings, Source, Target
    from jobmeter.errors import JobmeterError, NoData
    from jobmeter.model import Across, Kind, Measurement, Quality

_HOME = {
    "Across": "model",
    "Collector": "collectors.contract",
    "JobmeterError": "errors",
    "Kind": "model",
    "Measurement": "model",
    "NoData": "errors",
    "Quality": "model",
    "Readings": "collectors.contract",
    "Run": "api",
    "Source": "collectors.contract",
    "Target": "collectors.contract",
    "attach": "api",
    "run": "api",
    "start": "api",
}
"""Public name → module. Loaded when first used: the command line needs none of them."""

__all__ = [*_HOME, "__version__"]


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module 'jobmeter' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"jobmeter.{_HOME[name]}"), name)
