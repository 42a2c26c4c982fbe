"""Options that the functions of the API share, from the call, the environment and configuration files."""

from __future__ import annotations

import functools
import os
from collections.abc import Mapping, Sequence

from jobmeter.errors import OptionRefused, UsageError, quote
from jobmeter.model import Requirement
from jobmeter.session.enclosing_run import enclosing_label
from jobmeter.session.measuring import USUAL, MeasureOptions
from jobmeter.settings import SETTINGS, memory_bytes, resolve
from jobmeter.units import parse_seconds
from jobmeter.working_directory import present_directory

_NOTHING = Requirement()
_RESOLVED = ("interval", "window", "measurements", "store", "redact")
_VARIABLES = tuple(variable for name in _RESOLVED if (variable := SETTINGS[name].environment))


def requirement_of(cpus: float | None, memory: int | str | None, runtime: float | str | None) -> Requirement:
    """What is requested. UsageError for what is no amount."""
    if cpus is None and memory is None and runtime is None:
        return _NOTHING
    return Requirement(
        _amount("cpus", cpus),
        memory_bytes(memory),
        _amount("runtime", parse_seconds(runtime) if isinstance(runtime, str) else runtime),
    )


def _amount(name: str, amount: float | None) -> float | None:
    if amount is not None and (not isinstance(amount, (int, float)) or not 0 < amount < float("inf")):
        raise UsageError(f"{name}: {quote(amount)} is not a number above 0")
    return amount


def measure_options(
    name: str | None,
    labels: Mapping[str, str] | None,
    interval: float | None,
    window: float | None,
    measurements: Sequence[str] | None,
    store: str | os.PathLike[str] | None,
    keep: bool,
) -> MeasureOptions:
    """How to measure. OptionRefused for what has no effect without a journal."""
    for option, value in (("store", store), ("window", window)):
        if not keep and value is not None:
            raise OptionRefused(f"{option}: has no effect with keep=False, which stores no journal")
    options = _resolved(
        None if interval is None else str(interval),
        None if window is None else str(window),
        None if measurements is None else ",".join(measurements),
        None if store is None else os.fspath(store),
        keep,
        present_directory(),
        tuple(map(os.environ.get, _VARIABLES)),
    )
    given = {str(key): str(value) for key, value in (labels or {}).items()}
    return options._replace(name=name, labels={**enclosing_label(), **given})


@functools.lru_cache(maxsize=256)
def _resolved(
    interval: str | None,
    window: str | None,
    measurements: str | None,
    store: str | None,
    keep: bool,
    directory: str,
    environment: tuple[str | None, ...],
) -> MeasureOptions:
    """Found once for all that are measured alike from the same directory: configuration files are read for it."""
    longest = resolve("window", window, warn)
    return MeasureOptions(
        interval=resolve("interval", interval, warn),
        window=USUAL.window if longest is None else longest,
        fine_windows=longest is None,
        measurements=resolve("measurements", measurements, warn),
        store=resolve("store", store, warn) if keep else None,
        redact=resolve("redact", None, warn),
    )


def warn(message: str) -> None:
    """What the command line would print as a warning is a Python warning."""
    import warnings

    warnings.warn(message, stacklevel=2)
