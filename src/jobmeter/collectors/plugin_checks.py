"""Checks collectors of other packages against the contract, so that the meter can trust every source alike.

Descriptions are checked once, each value when it is read. A broken collector loses its own readings, and a message
says what is wrong with it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from jobmeter.collectors import BUILTIN
from jobmeter.collectors.contract import Collector, Ending, Moment, Readings, Source, Target
from jobmeter.errors import NoData
from jobmeter.kernel.machine import Machine
from jobmeter.model import Across, Gauge, Kind, Measurement, Number, Quality

UNITS = ("bytes", "seconds", "percent", "count", "joules", "watts", "celsius", "text")

_ACROSS = {
    Kind.GAUGE: (Across.SUM, Across.MAX, Across.LAST),
    Kind.COUNTER: (Across.SUM, Across.MAX, Across.LAST),
    Kind.LABEL: (Across.LAST,),
    Kind.CATEGORY: (Across.TALLY,),
}
"""How values of processes can combine: texts have no sum, numbers no tally."""
_MAY_BE_NEGATIVE = ("celsius", "watts")
_MOST = 2.0**63
"""No quantity in base units comes near it, and databases hold no larger integers."""
_LONGEST_KEY = 100
_LONGEST_TEXT = 300
_MOST_FAULTS = 10


class PluginFault(Exception):
    """What is wrong with a collector, or with one of its readings."""


def guarded(call: Callable[..., Any], *arguments: Any) -> Any:
    """The result of `call`. Raises PluginFault for any exception but NoData and KeyboardInterrupt, even `sys.exit`."""
    try:
        return call(*arguments)
    except (PluginFault, NoData, KeyboardInterrupt):
        raise
    except BaseException as error:  # noqa: BLE001 - it is not our code, and must not end the run
        raise PluginFault(in_words(error)) from None


def in_words(error: BaseException) -> str:
    """An error in one line."""
    try:
        lines = str(error).strip().splitlines()
    except Exception:  # noqa: BLE001 - its text is not our code either
        lines = []
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__


class Plugin:
    """A collector of another package, which then behaves like a built-in one."""

    def __init__(self, collector: Any, *, may_be_default: bool) -> None:
        """Raises PluginFault if its description breaks the contract."""
        self._collector: Collector = collector
        self.name = _checked_name(collector.name)
        self.measurements = _checked_measurements(self.name, collector.measurements)
        self.default = _checked_default(collector.default, frozenset(m.key for m in self.measurements))
        self.on_by_default = may_be_default and getattr(collector, "on_by_default", False) is True
        for method in ("check", "open"):
            if not callable(getattr(collector, method)):
                raise PluginFault(f"its {method} cannot be called")

    def check(self, machine: Machine) -> None:
        try:
            guarded(self._collector.check, machine)
        except PluginFault as fault:
            raise NoData(f"its check failed: {fault}") from None

    def missing(self, machine: Machine) -> dict[str, str]:
        if not hasattr(self._collector, "missing"):
            return {}
        try:
            reasons = guarded(self._collector.missing, machine)
            if not isinstance(reasons, dict):
                raise PluginFault(f"it returned {_kind_of(reasons)}, not a dict")
        except (PluginFault, NoData) as fault:
            return dict.fromkeys((m.key for m in self.measurements), f"its missing failed: {fault}")
        return {m.key: str(reasons[m.key]) for m in self.measurements if m.key in reasons}

    def open(self, target: Target, wanted: frozenset[str]) -> PluginSource | UnopenedSource:
        try:
            source = guarded(self._collector.open, target, wanted)
            for method in ("read", "finish", "close"):
                if not callable(getattr(source, method, None)):
                    raise PluginFault(f"it returned {_kind_of(source)}, which has no {method}()")
        except PluginFault as fault:
            return UnopenedSource(f"its open failed: {fault}", wanted)
        return PluginSource(source, {m.key: m for m in self.measurements}, wanted)


class PluginSource:
    """A source of another package. It raises nothing but NoData, and returns only keys that its collector declared.

    Of its `Abilities`, only `incomplete` is used.
    """

    def __init__(self, source: Source, declared: dict[str, Measurement], wanted: frozenset[str]) -> None:
        self._source = source
        self._declared = declared
        self._wanted = wanted
        self._faults: dict[str, str] = {}  # by key or method; "" for a reading as a whole

    def faults(self) -> list[str]:
        """What was wrong with it so far, each fault once."""
        return [f"{subject}: {fault}" if subject else fault for subject, fault in self._faults.items()]

    def read(self, moment: Moment) -> Readings:
        return self._checked(lambda: self._source.read(moment))

    def finish(self, moment: Moment, ending: Ending) -> Readings:
        return self._checked(lambda: self._source.finish(moment, ending))

    def incomplete(self) -> frozenset[str]:
        if not hasattr(self._source, "incomplete"):
            return frozenset()
        try:
            keys: frozenset[str] = guarded(lambda: frozenset(self._source.incomplete()))  # type: ignore[attr-defined]
        except (PluginFault, NoData) as fault:
            self._note("incomplete", fault)
            return frozenset(self._declared)  # not known to be complete
        return keys & self._declared.keys()

    def close(self) -> None:
        try:
            guarded(self._source.close)
        except (PluginFault, NoData) as fault:
            self._note("close", fault)

    def _checked(self, call: Callable[[], Any]) -> Readings:
        try:
            readings: Readings = guarded(lambda: self._usable(call()))
        except PluginFault as fault:
            self._note("", fault)
            return {}  # NoData is no fault: the record reports it
        return readings

    def _usable(self, readings: Any) -> Readings:
        if not isinstance(readings, dict):
            raise PluginFault(f"a reading is {_kind_of(readings)}, not a dict")
        usable: Readings = {}
        for key, reading in readings.items():
            if key not in self._declared:
                self._note(str(key)[:_LONGEST_KEY], "is not among its measurements")
            elif key in self._wanted:
                try:
                    usable[key] = checked_reading(self._declared[key], reading)
                except PluginFault as fault:
                    self._note(key, fault)
        return usable

    def _note(self, subject: str, fault: object) -> None:
        if subject not in self._faults and len(self._faults) < _MOST_FAULTS:
            self._faults[subject] = str(fault)


class UnopenedSource:
    """The source of a collector that is broken, not only without data here: reports the fault, and reads nothing."""

    def __init__(self, fault: str, wanted: frozenset[str]) -> None:
        self._fault = fault
        self._wanted = wanted

    def faults(self) -> list[str]:
        return [self._fault]

    def missing(self) -> dict[str, str]:
        return dict.fromkeys(self._wanted, self._fault)

    def read(self, moment: Moment) -> Readings:
        return {}

    def finish(self, moment: Moment, ending: Ending) -> Readings:
        return {}

    def close(self) -> None:
        return


def checked_reading(measurement: Measurement, reading: Any) -> Any:
    """The reading in the form that the meter expects. Raises PluginFault if it does not fit the description."""
    if isinstance(reading, (list, tuple)):
        return [_checked_value(measurement, value) for value in reading]
    if measurement.kind is not Kind.CATEGORY:
        return _checked_value(measurement, reading)
    if isinstance(reading, dict):
        return {_text(name): _number(count, may_be_negative=False) for name, count in reading.items()}
    return {_text(reading): 1}


def _checked_value(measurement: Measurement, value: Any) -> Number | str:
    if measurement.kind in (Kind.LABEL, Kind.CATEGORY):
        return _text(value)
    is_level = measurement.kind is Kind.GAUGE
    return _number(value, may_be_negative=is_level and measurement.unit in _MAY_BE_NEGATIVE)


def _number(value: Any, *, may_be_negative: bool) -> Number:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise PluginFault(f"{_kind_of(value)} is not a number")
    # A subclass of int or float may have a text form that is not JSON.
    number: Number = int(value) if isinstance(value, int) else float(value)
    if not -_MOST < number < _MOST:  # false for NaN too
        raise PluginFault(
            "an integer of 2^63 or more" if isinstance(number, int) else f"{number} is not a usable number"
        )
    if number < 0 and not may_be_negative:
        raise PluginFault(f"{number} is below 0")
    return number


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise PluginFault(f"{_kind_of(value)} is not a text")
    return str(value[:_LONGEST_TEXT])


def _kind_of(value: Any) -> str:
    return "None" if value is None else f"a value of type {type(value).__name__}"


def _checked_name(name: Any) -> str:
    if not isinstance(name, str) or not _is_plain(name):
        raise PluginFault(f"its name {name!r} is not made of lower-case letters, digits and _")
    for builtin in BUILTIN:
        if name == builtin or name.startswith(f"{builtin}_"):
            raise PluginFault(f"keys that begin with {builtin}_ are jobmeter's own")
    return name


def _checked_measurements(name: str, declared: Any) -> tuple[Measurement, ...]:
    if not isinstance(declared, (list, tuple)) or isinstance(declared, Measurement) or not declared:
        raise PluginFault("its measurements are not a tuple of Measurement")
    measurements = tuple(_checked_measurement(name, measurement) for measurement in declared)
    keys = [measurement.key for measurement in measurements]
    for key in keys:
        if keys.count(key) > 1:
            raise PluginFault(f"{key}: it is declared twice")
    return measurements


def _checked_measurement(name: str, measurement: Any) -> Measurement:
    if not isinstance(measurement, Measurement):
        raise PluginFault(f"among its measurements is {_kind_of(measurement)}, not a Measurement")
    key, unit = measurement.key, measurement.unit
    if not isinstance(key, str) or not _is_plain(key) or len(key) > _LONGEST_KEY:
        raise PluginFault(f"the key {key!r} is not made of lower-case letters, digits and _")
    if not key.startswith(f"{name}_"):
        raise PluginFault(f"{key}: a key begins with the name of its collector, here {name}_")
    kind, across = _one_of(Kind, key, "kind", measurement.kind), _one_of(Across, key, "across", measurement.across)
    quality = _one_of(Quality, key, "quality", measurement.quality)
    gauge = _one_of(Gauge, key, "gauge", measurement.gauge)
    if unit not in UNITS:
        raise PluginFault(f"{key}: the unit {unit!r} is not one of {', '.join(UNITS)}")
    if (unit == "text") != (kind in (Kind.LABEL, Kind.CATEGORY)):
        raise PluginFault(f"{key}: a {kind.value} cannot have the unit {unit!r}")
    if across not in _ACROSS[kind]:
        raise PluginFault(f"{key}: the values of a {kind.value} cannot be combined by {across.value!r}")
    if not isinstance(measurement.help, str) or not measurement.help.strip() or "\n" in measurement.help:
        raise PluginFault(f"{key}: its help is not a line of text")
    # Strings are accepted in place of members of an Enum.
    return measurement._replace(kind=kind, across=across, quality=quality, gauge=gauge)


def _one_of(choices: Any, key: str, field: str, value: Any) -> Any:
    try:
        return choices(value)
    except ValueError:
        raise PluginFault(f"{key}: {field} is not one of {', '.join(choice.value for choice in choices)}") from None


def _checked_default(default: Any, keys: frozenset[str]) -> frozenset[str]:
    if isinstance(default, str) or not isinstance(default, Iterable):
        raise PluginFault("its default is not a set of keys")
    chosen = frozenset(default)
    if not chosen <= keys:
        raise PluginFault(
            f"its default has keys that it does not measure: {', '.join(sorted(map(str, chosen - keys)))}"
        )
    return chosen


def _is_plain(name: str) -> bool:
    return name.isascii() and name.isidentifier() and name == name.lower() and name[0] != "_"
