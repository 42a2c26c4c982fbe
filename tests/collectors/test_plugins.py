"""Collectors of other packages, good and broken, through the real `jobmeter run`."""

from __future__ import annotations

import json
import subprocess
import textwrap
from pathlib import Path
from typing import Any

import pytest

from jobmeter.collectors.plugins import Entry, parse_entry_points
from tests.running import command_line, environment, interpreter, workplace
from tests.waiting import LONG

DESCRIBED = """
from jobmeter.collectors.contract import *
from jobmeter.errors import NoData
from jobmeter.model import *

def gauge(key, unit="percent", kind=Kind.GAUGE, across=Across.LAST, help="A level."):
    return Measurement(key, unit, kind, across, Quality.SAMPLED, help)

class Source:
    def read(self, moment): return {"battery_charge": 50.0}
    def finish(self, moment, ending): return self.read(moment)
    def close(self): pass

class Battery:
    name = "battery"
    measurements = (gauge("battery_charge"),)
    default = frozenset({"battery_charge"})
    def check(self, machine): pass
    def open(self, target, wanted): return Source()
"""
GOOD = """
class Solar(Battery):
    name = "solar"
    measurements = (gauge("solar_power", "watts"),)
    default = frozenset({"solar_power"})
    def open(self, target, wanted):
        source = Source()
        source.read = lambda moment: {"solar_power": -3.5}
        source.finish = lambda moment, ending: {}
        return source
"""
"""Another collector, that works: it must go on doing so beside every broken one."""


class Packages:
    """A folder with packages, as an installer makes it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def install(self, package: str, code: str, **entries: str) -> Packages:
        """A package of one module, with entry points: name=class."""
        stem = package.replace("-", "_")
        info = self.folder / f"{stem}-1.0.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
        points = "".join(f"{name} = {stem}_code:{value}\n" for name, value in entries.items())
        (info / "entry_points.txt").write_text(f"[console_scripts]\nx = y:z\n\n[jobmeter.collectors]\n{points}")
        (self.folder / f"{stem}_code.py").write_text(DESCRIBED + textwrap.dedent(code))
        return self

    def __call__(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """`jobmeter ARGUMENTS` where these packages are installed."""
        kept = environment()
        settings = {**kept, "PYTHONPATH": f"{kept['PYTHONPATH']}:{self.folder}", "HOME": str(self.folder)}
        return subprocess.run(
            command_line(arguments), env=settings, cwd=workplace(), capture_output=True, text=True, check=False,
            timeout=LONG,
        )  # fmt: skip

    def run(self, *options: str, command: tuple[str, ...] = ("sh", "-c", "sleep 0.2; exit 7")) -> Ran:
        """`jobmeter run` of a job that exits with 7."""
        report = Path(workplace()) / "record.json"
        store = str(report.parent / "store")
        done = self("run", "--quiet", "--interval", "0.05", "--report", str(report), "--store", store, *options,
                    "--", *command)  # fmt: skip
        return Ran(done, json.loads(report.read_text()) if report.exists() else {})


class Ran:
    def __init__(self, done: subprocess.CompletedProcess[str], record: dict[str, Any]) -> None:
        self.code = done.returncode
        self.lines = done.stderr.splitlines()
        self.measured: dict[str, Any] = record.get("measurements", {})
        self.collectors: dict[str, Any] = record.get("provenance", {}).get("collectors", {})


@pytest.fixture
def packages() -> Packages:
    return Packages(Path(workplace()) / "packages")


def test_a_collector_of_another_package_is_used_when_it_is_requested(packages: Packages) -> None:
    packages.install("power", "", battery="Battery")
    done = packages.run("--measurements", "default,battery_*")
    assert (7, [], 50.0) == (done.code, done.lines, done.measured["battery_charge"]["peak"])
    assert "proc_processes" in done.measured
    assert "battery_charge" not in packages.run().measured


def test_one_of_a_package_called_jobmeter_something_can_be_on_by_default(packages: Packages) -> None:
    on = "class On(Battery):\n    on_by_default = True\n"
    packages.install("jobmeter-battery", on, battery="On", solar="Solar").install("jobmeter-else", "")
    (packages.folder / "jobmeter_battery_code.py").write_text(DESCRIBED + on + GOOD)
    done = packages.run()
    assert (7, [], 50.0) == (done.code, done.lines, done.measured["battery_charge"]["peak"])
    assert "proc_processes" in done.measured
    assert "solar_power" not in done.measured  # it did not say so
    assert "battery_charge" in packages.run("--measurements", "default").measured
    assert "battery_charge" in packages.run("--measurements=-proc_processes").measured
    assert "battery_charge" not in packages.run("--measurements=-battery_*").measured
    assert "battery_charge" not in packages.run("--measurements", "proc_rss_total").measured


def test_one_of_another_package_cannot_switch_itself_on(packages: Packages) -> None:
    packages.install("power", "class On(Battery):\n    on_by_default = True\n", battery="On")
    assert "battery_charge" not in packages.run().measured
    assert "battery_charge" not in packages.run("--measurements", "default,host_*").measured


def test_a_run_without_such_packages_does_not_look_for_entry_points(packages: Packages) -> None:
    packages.install("power", "raise SystemExit('imported')", battery="Battery")
    program = (
        "import sys\nfrom jobmeter.cli.main import main\n"
        "main(['run', '--quiet', '--store', sys.argv[1], '--', 'true'])\n"
        "sys.stderr.write(' '.join({'importlib.metadata', 'jobmeter.collectors.plugins', 'power_code'}"
        " & {*sys.modules}))"
    )
    kept = environment()
    settings = {**kept, "PYTHONPATH": f"{kept['PYTHONPATH']}:{packages.folder}"}
    words = [interpreter(), "-c", program, workplace()]
    assert "" == subprocess.run(words, env=settings, capture_output=True, text=True, check=True).stderr


BAD_IMPORTS = {
    "there is no such module": ("import nothing_of_this_name", "ModuleNotFoundError: No module named"),
    "it is no Python": ("def (", "SyntaxError: invalid syntax"),
    "it exits": ("raise SystemExit(3)", "SystemExit: 3"),
    "it raises something of several lines": ("raise RuntimeError('first\\nsecond')", "RuntimeError: first"),
    "it raises what is no Exception": ("raise BaseException('odd')", "BaseException: odd"),
    "it raises what has no text": ("class E(Exception):\n    __str__ = None\nraise E", "left out: E"),
    "there is no such class": ("del Battery", "AttributeError: module"),
    "it cannot be made": ("Battery.__init__ = lambda self: 1 / 0", "ZeroDivisionError"),
}


@pytest.mark.parametrize(("code", "fault"), BAD_IMPORTS.values(), ids=list(BAD_IMPORTS))
def test_a_collector_that_cannot_be_imported_costs_one_line(packages: Packages, code: str, fault: str) -> None:
    packages.install("power", code, battery="Battery").install("sun", GOOD, solar="Solar")
    done = packages.run("--measurements", "all,-ps_*,-psutil_*")
    assert (7, 1) == (done.code, len(done.lines))
    assert "jobmeter: plug-in battery of power is left out: " in done.lines[0]
    assert fault in done.lines[0]
    assert -3.5 == done.measured["solar_power"]["peak"]


BAD_DESCRIPTIONS = {
    "no name": ("del Battery.name", "AttributeError"),
    "a name that is no text": ("Battery.name = 5", "its name 5 is not made of lower-case letters"),
    "a name with a dash": ("Battery.name = 'a-b'", "its name 'a-b' is not made of lower-case letters"),
    "the name of a built-in one": ("Battery.name = 'proc'", "keys that begin with proc_ are jobmeter's own"),
    "a name in front of built-in keys": (
        "Battery.name = 'proc_rss'\nBattery.measurements = (gauge('proc_rss_total'),)\nBattery.default = ()",
        "keys that begin with proc_ are jobmeter's own",
    ),
    "no measurements": ("Battery.measurements = ()", "its measurements are not a tuple of Measurement"),
    "one measurement, in no tuple": ("Battery.measurements = gauge('battery_charge')", "are not a tuple"),
    "something else among them": ("Battery.measurements = ('battery_charge',)", "a value of type str, not a Measure"),
    "a key that is no text": ("Battery.measurements = (gauge(None),)", "the key None is not made of"),
    "a key with a star": ("Battery.measurements = (gauge('battery_*'),)", "the key 'battery_*' is not made of"),
    "a built-in key": ("Battery.measurements = (gauge('proc_rss_total'),)", "a key begins with the name of its coll"),
    "a key twice": ("Battery.measurements *= 2", "battery_charge: it is declared twice"),
    "an unknown unit": ("Battery.measurements = (gauge('battery_charge', 'volts'),)", "the unit 'volts' is not one of"),
    "an unknown kind": ("Battery.measurements = (gauge('battery_charge', kind='x'),)", "kind is not one of gauge, cou"),
    "an unknown across": (
        "Battery.measurements = (gauge('battery_charge', across=7),)",
        "across is not one of sum, m",
    ),
    "a text that is summed": (
        "Battery.measurements = (gauge('battery_charge', 'text', Kind.LABEL, Across.SUM),)",
        "the values of a label cannot be combined by 'sum'",
    ),
    "a number that is tallied": (
        "Battery.measurements = (gauge('battery_charge', across=Across.TALLY),)",
        "the values of a gauge cannot be combined by 'tally'",
    ),
    "a number of texts": (
        "Battery.measurements = (gauge('battery_charge', 'text'),)",
        "a gauge cannot have the unit 'text'",
    ),
    "no help": ("Battery.measurements = (gauge('battery_charge', help=None),)", "its help is not a line of text"),
    "a default of other keys": ("Battery.default = {'proc_rss'}", "its default has keys that it does not measure"),
    "a default that is a text": ("Battery.default = 'battery_charge'", "its default is not a set of keys"),
    "no open": ("del Battery.open", "AttributeError"),
    "an open that is no method": ("Battery.open = 5", "its open cannot be called"),
}


@pytest.mark.parametrize(("code", "fault"), BAD_DESCRIPTIONS.values(), ids=list(BAD_DESCRIPTIONS))
def test_a_collector_that_describes_itself_badly_costs_one_line(packages: Packages, code: str, fault: str) -> None:
    packages.install("power", code, battery="Battery").install("sun", GOOD, solar="Solar")
    done = packages.run("--measurements", "default,solar_*")
    assert (7, 1) == (done.code, len(done.lines))
    assert "jobmeter: plug-in battery of power is left out: " in done.lines[0]
    assert fault in done.lines[0]
    assert -3.5 == done.measured["solar_power"]["peak"]


def test_of_two_with_the_same_name_the_first_is_used(packages: Packages) -> None:
    packages.install("power", "", battery="Battery").install("voltage", "", battery="Battery")
    done = packages.run("--measurements", "battery_*")
    assert ["jobmeter: plug-in battery of voltage is left out: another plug-in is called 'battery' too"] == done.lines
    assert 50.0 == done.measured["battery_charge"]["peak"]


BAD_VALUES = {
    "NaN": ("float('nan')", "nan is not a usable number"),
    "infinity": ("float('inf')", "inf is not a usable number"),
    "minus infinity": ("float('-inf')", "-inf is not a usable number"),
    "a text": ("'50'", "a value of type str is not a number"),
    "None": ("None", "None is not a number"),
    "a bool": ("True", "a value of type bool is not a number"),
    "a huge integer": ("10 ** 400", "an integer of 2^63 or more"),
    "a huge float": ("1e300", "1e+300 is not a usable number"),
    "less than nothing": ("-1", "-1 is below 0"),
    "a dict": ("{'a': 1}", "a value of type dict is not a number"),
    "a column with NaN": ("[1.0, float('nan')]", "nan is not a usable number"),
}


@pytest.mark.parametrize(("value", "fault"), BAD_VALUES.values(), ids=list(BAD_VALUES))
def test_a_value_that_cannot_be_is_left_out_and_the_others_are_kept(packages: Packages, value: str, fault: str) -> None:
    packages.install(
        "power",
        f"""
        Battery.measurements = (gauge("battery_charge"), gauge("battery_cells", "count", across=Across.SUM))
        Source.read = lambda self, moment: {{"battery_charge": {value}, "battery_cells": (2, 3)}}
        """,
        battery="Battery",
    )
    done = packages.run("--measurements", "battery_*")
    assert (7, [f"jobmeter: plug-in battery: battery_charge: {fault}"]) == (done.code, done.lines)
    assert {"battery_cells"} == done.measured.keys()
    assert 5 == done.measured["battery_cells"]["peak"]
    assert f"battery_charge: {fault}" == done.collectors["battery"]["failed"]


def test_one_bad_value_among_good_ones_costs_that_reading_alone(packages: Packages) -> None:
    packages.install(
        "power",
        """
        values = iter([float("nan"), 40.0, None])
        Source.read = lambda self, moment: {"battery_charge": next(values, 40.0)}
        Source.finish = lambda self, moment, ending: {"battery_charge": 41.0}
        """,
        battery="Battery",
    )
    done = packages.run("--measurements", "battery_*")
    assert (7, 1) == (done.code, len(done.lines))
    # The last one is read when the job has ended, and so is no level of it.
    assert (40.0, 40.0) == (done.measured["battery_charge"]["peak"], done.measured["battery_charge"]["mean"])


def test_texts_and_categories_are_held_to_their_kinds(packages: Packages) -> None:
    packages.install(
        "power",
        """
        Battery.measurements = (
            gauge("battery_state", "text", "category", "tally"), gauge("battery_maker", "text", "label", "last"),
            gauge("battery_serial", "text", "label", "last"),
        )
        Battery.default = ()
        Source.read = lambda self, moment: {
            "battery_state": "charging", "battery_maker": "x" * 1000, "battery_serial": 5,
        }
        """,
        battery="Battery",
    )
    done = packages.run("--measurements", "battery_*")
    assert ["jobmeter: plug-in battery: battery_serial: a value of type int is not a text"] == done.lines
    assert {"charging": 1.0} == done.measured["battery_state"]["share"]
    assert "x" * 300 == done.measured["battery_maker"]["last"]


BAD_SOURCES = {
    "read raises": ("Source.read = lambda self, moment: 1 / 0", "ZeroDivisionError: division by zero"),
    "read exits": ("def leave(self, moment): raise SystemExit(9)\nSource.read = leave", "SystemExit: 9"),
    "read returns nothing": ("Source.read = lambda self, moment: None", "a reading is None, not a dict"),
    "read returns a key it did not declare": (
        "Source.read = lambda self, moment: {'proc_rss_total': 1, 'battery_charge': 50.0}",
        "proc_rss_total: is not among its measurements",
    ),
    "read takes no moment": ("Source.read = lambda self: {}", "TypeError"),
    "finish raises": ("Source.finish = lambda self, moment, ending: 1 / 0", "ZeroDivisionError"),
    "finish returns a text": ("Source.finish = lambda *_: 'end'", "a reading is a value of type str, not a dict"),
    "close raises": ("Source.close = lambda self: 1 / 0", "close: ZeroDivisionError: division by zero"),
    "close exits": ("def leave(self): raise SystemExit(9)\nSource.close = leave", "close: SystemExit: 9"),
    "incomplete raises": ("Source.incomplete = lambda self: 1 / 0", "incomplete: ZeroDivisionError"),
    "incomplete returns rubbish": ("Source.incomplete = lambda self: 5", "incomplete: TypeError"),
    "open raises": ("Battery.open = lambda *_: 1 / 0", "its open failed: ZeroDivisionError: division by zero"),
    "open exits": ("def leave(*_): raise SystemExit(9)\nBattery.open = leave", "its open failed: SystemExit: 9"),
    "open returns nothing": (
        "Battery.open = lambda *_: None",
        "its open failed: it returned None, which has no read",
    ),
    "it has no close": ("del Source.close", "its open failed: it returned a value of type Source, which has no close"),
}


@pytest.mark.parametrize(("code", "fault"), BAD_SOURCES.values(), ids=list(BAD_SOURCES))
def test_a_source_that_fails_costs_its_own_readings_and_one_line(packages: Packages, code: str, fault: str) -> None:
    packages.install("power", code, battery="Battery").install("sun", GOOD, solar="Solar")
    done = packages.run("--measurements", "default,battery_*,solar_*")
    assert (7, 1) == (done.code, len(done.lines))
    assert f"jobmeter: plug-in battery: {fault}" in done.lines[0]
    assert -3.5 == done.measured["solar_power"]["peak"]
    assert "proc_processes" in done.measured


def test_no_data_is_no_fault(packages: Packages) -> None:
    code = "def none(*_): raise NoData('no battery in this machine')\nBattery.open = none"
    packages.install("power", code, battery="Battery")
    done = packages.run("--measurements", "default,battery_*")
    assert (7, []) == (done.code, done.lines)
    assert {"available": False, "why": "no battery in this machine"} == done.collectors["battery"]


NOT_HERE = {
    "no data": ("def none(*_): raise NoData('no battery')\nBattery.open = none", "no battery"),
    "check finds none": ("def none(*_): raise NoData('no battery')\nBattery.check = none", "no battery"),
    "check raises": ("Battery.check = lambda *_: 1 / 0", "its check failed: ZeroDivisionError: division by zero"),
    "open raises": ("Battery.open = lambda *_: 1 / 0", "its open failed: ZeroDivisionError: division by zero"),
    "missing says so": ("Battery.missing = lambda *_: {'battery_charge': 'worn out'}", "worn out"),
    "missing raises": ("Battery.missing = lambda *_: 1 / 0", "its missing failed: ZeroDivisionError: division by zero"),
    "missing returns rubbish": (
        "Battery.missing = lambda *_: 5",
        "its missing failed: it returned a value of type i",
    ),
}


@pytest.mark.parametrize(("code", "why"), NOT_HERE.values(), ids=list(NOT_HERE))
def test_a_key_that_is_named_and_cannot_be_measured_keeps_the_job_from_starting(
    packages: Packages, code: str, why: str
) -> None:
    packages.install("power", code, battery="Battery")
    mark = Path(workplace()) / "ran"
    done = packages.run("--measurements", "default,battery_charge", command=("touch", str(mark)))
    assert (2, 1, False) == (done.code, len(done.lines), mark.exists())
    assert f"jobmeter: --measurements: battery_charge cannot be measured here: {why}" in done.lines[0]


def test_doctor_and_measurements_show_what_is_wrong(packages: Packages) -> None:
    packages.install("power", "raise SystemExit(3)", battery="Battery").install(
        "sun", GOOD + "Solar.check = lambda *_: 1 / 0", solar="Solar"
    )
    findings = {finding["subject"]: finding for finding in json.loads(packages("doctor", "--json").stdout)}
    assert (False, "battery of power is left out: SystemExit: 3") == (
        findings["plug-in"]["good"],
        findings["plug-in"]["says"],
    )
    assert "its check failed: ZeroDivisionError: division by zero" == findings["solar"]["says"]
    listed = packages("measurements", "--json")
    rows = {row["key"]: row for row in json.loads(listed.stdout)}
    assert "its check failed: ZeroDivisionError: division by zero" == rows["solar_power"]["why"]
    assert ["jobmeter: plug-in battery of power is left out: SystemExit: 3"] == listed.stderr.splitlines()


def test_the_page_of_measurements_has_the_built_in_ones_alone(packages: Packages) -> None:
    packages.install("power", "", battery="Battery")
    assert "battery" not in packages("measurements", "--markdown").stdout


def test_entry_points_are_read_as_installers_write_them() -> None:
    content = "[other]\na = b:c\n\n[jobmeter.collectors]\n# a comment\none=first:One\ntwo = pkg.second:Two [extra]\n"
    entries = parse_entry_points(content, "jobmeter_x")
    assert [Entry("one", "first:One", "jobmeter_x"), Entry("two", "pkg.second:Two [extra]", "jobmeter_x")] == entries
