"""jobmeter measures what a job really used, and recommends what to request next time."""

from __future__ import annotations

from typing import TYPE_CHECKING

__version__ = "0.1.0"

if TYPE_CHECKING:
    from jobmeter.api import ContainerMeter, Run, attach, run, run_workflow, start
    from jobmeter.collectors.contract import Collector, Readings, Source, Target
    from jobmeter.errors import JobmeterError, NoData
    from jobmeter.launch.container.spec import ContainerOptions
    from jobmeter.model import Across, Kind, Measurement, Quality, Status

__all__ = [
    "Across",
    "Collector",
    "ContainerMeter",
    "ContainerOptions",
    "JobmeterError",
    "Kind",
    "Measurement",
    "NoData",
    "Quality",
    "Readings",
    "Run",
    "Source",
    "Status",
    "Target",
    "__version__",
    "attach",
    "run",
    "run_workflow",
    "start",
]

_MODULES = ("api", "collectors.contract", "errors", "model", "launch.container.spec")
"""Where the public names are. Loaded when one is first used: the command line needs none of them."""


def __getattr__(name: str) -> object:
    if name in __all__:
        from importlib import import_module

        for module in _MODULES:
            value = getattr(import_module(f"jobmeter.{module}"), name, None)
            if value is not None:
                return value
    raise AttributeError(f"module 'jobmeter' has no attribute {name!r}")
