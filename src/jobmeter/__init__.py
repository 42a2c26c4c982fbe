"""jobmeter measures what a job really used, and recommends what to request next time."""

__version__ = "0.1.0"

TYPE_CHECKING = False  # not from `typing`: Ctrl-C is handled only after this module (see __main__)

if TYPE_CHECKING:
    from jobmeter.api.blocks import BlockMeter, measure, measured
    from jobmeter.api.history import RunStore, open_store
    from jobmeter.api.jobs import AttachedProcess, ContainerMeter, RunningJob, attach, run, run_workflow, start
    from jobmeter.api.results import Figure, Run, Usage
    from jobmeter.cluster.monitor import ClusterMonitor
    from jobmeter.collectors.contract import Collector, Readings, Source, Target
    from jobmeter.errors import (
        CommandNotExecutable,
        CommandNotFound,
        JobmeterError,
        LaunchError,
        NoData,
        OptionRefused,
        StoreError,
        UsageError,
    )
    from jobmeter.launch.container.spec import ContainerOptions, Mount
    from jobmeter.meter.watch import Window
    from jobmeter.model import Across, Kind, Measurement, Quality, Status

_MODULES = {
    "api.blocks": ("BlockMeter", "measure", "measured"),
    "api.history": ("RunStore", "open_store"),
    "api.jobs": ("AttachedProcess", "ContainerMeter", "RunningJob", "attach", "run", "run_workflow", "start"),
    "api.results": ("Figure", "Run", "Usage"),
    "cluster.monitor": ("ClusterMonitor",),
    "collectors.contract": ("Collector", "Readings", "Source", "Target"),
    "errors": (
        "CommandNotExecutable", "CommandNotFound", "JobmeterError", "LaunchError", "NoData", "OptionRefused",
        "StoreError", "UsageError",
    ),
    "launch.container.spec": ("ContainerOptions", "Mount"),
    "meter.watch": ("Window",),
    "model": ("Across", "Kind", "Measurement", "Quality", "Status"),
}  # fmt: skip
"""Where the public names are. Loaded when one is first used: the command line needs none of them."""

_HOME = {name: module for module, names in _MODULES.items() for name in names}

__all__ = [
    "Across",
    "AttachedProcess",
    "BlockMeter",
    "ClusterMonitor",
    "Collector",
    "CommandNotExecutable",
    "CommandNotFound",
    "ContainerMeter",
    "ContainerOptions",
    "Figure",
    "JobmeterError",
    "Kind",
    "LaunchError",
    "Measurement",
    "Mount",
    "NoData",
    "OptionRefused",
    "Quality",
    "Readings",
    "Run",
    "RunStore",
    "RunningJob",
    "Source",
    "Status",
    "StoreError",
    "Target",
    "Usage",
    "UsageError",
    "Window",
    "__version__",
    "attach",
    "measure",
    "measured",
    "open_store",
    "run",
    "run_workflow",
    "start",
]


def __getattr__(name: str) -> object:
    if name in _HOME:
        from importlib import import_module

        value = globals()[name] = getattr(import_module(f"jobmeter.{_HOME[name]}"), name)
        return value
    raise AttributeError(f"module 'jobmeter' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)


def load_ipython_extension(shell: object) -> None:
    """`%load_ext jobmeter`: the cell magic `%%jobmeter`."""
    from importlib import import_module

    import_module("jobmeter.integrations.ipython").register(shell)
