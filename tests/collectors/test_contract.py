"""What holds for every built-in collector, whatever it reads."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from jobmeter.collectors import BUILTIN, load
from jobmeter.collectors.contract import Collector, Ending, Moment, Readings, Reaped, Target
from jobmeter.collectors.plugin_checks import UNITS
from jobmeter.errors import NoData
from jobmeter.kernel.cgroup.group import create_group
from jobmeter.kernel.machine import Machine
from jobmeter.launch import protocol
from jobmeter.launch.spawn import LaunchedJob, spawn
from jobmeter.meter.aggregate import combine
from jobmeter.model import Across, Kind, Measurement

JOB = "import os, time; held = b'x' * (8 << 20); time.sleep(0.3); print(sum(range(10**6)), file=open(os.devnull, 'w'))"

every_collector = pytest.mark.parametrize("collector", [load(name) for name in BUILTIN], ids=list(BUILTIN))


@every_collector
def test_its_name_is_the_one_it_is_listed_under(collector: Collector) -> None:
    assert type(load(collector.name)) is type(collector)


@every_collector
def test_its_keys_begin_with_its_name(collector: Collector) -> None:
    for measurement in collector.measurements:
        assert measurement.key.startswith(f"{collector.name}_"), measurement.key


def test_no_key_is_declared_twice() -> None:
    keys = Counter(m.key for collector in map(load, BUILTIN) for m in collector.measurements)
    assert [key for key, times in keys.items() if times > 1] == []


@every_collector
def test_its_units_are_base_units(collector: Collector) -> None:
    for measurement in collector.measurements:
        assert measurement.unit in UNITS, measurement.key
        assert (measurement.unit == "text") == (measurement.kind in (Kind.LABEL, Kind.CATEGORY)), measurement.key
        assert (measurement.across is Across.TALLY) == (measurement.kind is Kind.CATEGORY), measurement.key


@every_collector
def test_its_help_is_one_sentence(collector: Collector) -> None:
    for measurement in collector.measurements:
        assert measurement.help.endswith("."), measurement.key
        assert ". " not in measurement.help, measurement.key
        assert "\n" not in measurement.help, measurement.key


@every_collector
def test_its_default_is_among_its_keys(collector: Collector) -> None:
    assert collector.default
    assert collector.default <= {m.key for m in collector.measurements}


@contextlib.contextmanager
def job_before_exec() -> Iterator[tuple[LaunchedJob, Target]]:
    """A short job that waits to be let go, in a cgroup of its own where one may be had."""
    launched = spawn([sys.executable, "-c", JOB], environment=dict(os.environ))
    try:
        group = create_group(Machine(), f"contract{launched.main}")
    except NoData:
        group = None
    try:
        if group is not None:
            group.add(launched.main)
        yield launched, Target(launched.shepherd, launched.main, group=group)
    finally:
        launched.close()
        if group is not None:
            group.remove()


def run_to_its_end(launched: LaunchedJob) -> Ending:
    """Let the job go on to its end, as the supervisor does."""
    reaped = []
    with contextlib.suppress(EOFError):
        while message := launched.next_message():
            if message.kind == protocol.EXITED:
                launched.may_be_reaped()
            elif message.kind == protocol.REAPED:
                used = message.user_us / 1e6, message.system_us / 1e6, message.maxrss_kib * 1024
                reaped.append(Reaped(*used))
    return Ending(tuple(reaped))


def check_kinds(readings: Readings, declared: dict[str, Measurement]) -> None:
    assert readings.keys() <= declared.keys()
    for key, reading in readings.items():
        measurement = declared[key]
        value = combine(measurement, reading) if isinstance(reading, list) else reading
        if value is None:
            continue
        if measurement.kind is Kind.LABEL:
            assert isinstance(value, str), key
        elif measurement.kind is Kind.CATEGORY:
            assert isinstance(value, dict), key
        else:
            assert isinstance(value, (int, float)), key
            assert value >= 0, key


@every_collector
def test_it_yields_only_what_it_declares_in_the_right_kind(collector: Collector) -> None:
    declared = {m.key: m for m in collector.measurements}
    with job_before_exec() as (launched, target):
        try:
            source = collector.open(target, frozenset(declared))
        except NoData as reason:
            pytest.skip(str(reason))
        launched.execute()
        seen: Readings = {}
        for _ in range(4):
            time.sleep(0.07)
            readings = source.read(Moment(time.monotonic()))
            check_kinds(readings, declared)
            seen |= readings
        ending = run_to_its_end(launched)
        last = source.finish(Moment(time.monotonic()), ending)
        check_kinds(last, declared)
        source.close()
        assert seen | last


@every_collector
def test_a_machine_with_nothing_to_read_is_no_data_and_no_failure(collector: Collector, tmp_path: Path) -> None:
    nothing = Machine(proc=str(tmp_path), sys=str(tmp_path))
    with contextlib.suppress(NoData):
        collector.check(nothing)
    with job_before_exec() as (_, target), contextlib.suppress(NoData):
        collector.open(target._replace(machine=nothing), collector.default).close()
