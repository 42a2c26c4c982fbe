"""Options of `jobmeter run` that say what is measured, and where it goes."""

from __future__ import annotations

import json
import os
from pathlib import Path

from jobmeter.journal.reader import read_journal
from jobmeter.record.read import measured
from tests.running import environment, jobmeter, meter, workplace


def test_name_and_labels_are_in_the_record() -> None:
    done = meter("true", options=["--name", "train", "--label", "team=a", "--label", "trial=7=b"])
    assert ("train", {"team": "a", "trial": "7=b"}) == (done.record["name"], done.record["labels"])
    assert "jobmeter: train completed" in done.stderr


def test_only_what_is_selected_is_measured() -> None:
    done = meter("sleep", "0.2", options=["--measurements", "proc_rss_total,proc_processes"])
    assert set(done.record["measurements"]) == {"proc_rss_total", "proc_processes"}
    figures = {"memory_peak_bytes", "memory_mean_bytes", "memory_min_bytes", "processes_peak"}
    assert figures == done.record["usage"].keys()


def test_a_pattern_selects_all_keys_of_a_source_and_the_default_can_be_extended() -> None:
    done = meter("sleep", "0.2", options=["--measurements", "default,host_*"])
    assert {"host_load1", "host_mem_used", "proc_rss_total", "rusage_maxrss"} <= done.record["measurements"].keys()


def test_the_record_holds_its_provenance() -> None:
    provenance = meter("sleep", "0.3", options=["--interval", "0.1"]).record["provenance"]
    assert provenance["interval_seconds"] == 0.1
    assert provenance["interval_reached_seconds"] > 0
    assert provenance["meter_cpu_seconds"] > 0
    assert provenance["samples"] >= 4
    assert provenance["collectors"]["proc"] == {"available": True}


def test_per_process_figures_are_kept_in_the_journal_on_request() -> None:
    folder = workplace()
    options = ["--quiet", "--store", folder, "--interval", "0.1", "--window", "0.2", "--per-process"]
    jobmeter("run", *options, "--", "sh", "-c", "sleep 0.7 & sleep 0.7; wait")
    (name,) = os.listdir(f"{folder}/journal")
    journal = read_journal(f"{folder}/journal/{name}")
    commands = {entry["cmd"] for _, processes in journal.processes for entry in processes}
    assert "sleep 0.7" in commands
    assert all(
        {"pid", "cmd", "cpu_seconds", "rss_peak_bytes", "seconds"} <= e.keys() for _, p in journal.processes for e in p
    )


def test_windows_add_up_to_the_totals_of_the_record() -> None:
    folder = workplace()
    burn = "i=0; while [ $i -lt 400000 ]; do i=$((i+1)); done"
    options = ["--quiet", "--store", folder, "--interval", "0.1", "--window", "0.2"]
    jobmeter("run", *options, "--", "sh", "-c", burn)
    (name,) = os.listdir(f"{folder}/journal")
    journal = read_journal(f"{folder}/journal/{name}")
    assert journal.record is not None
    key = journal.record["usage"]["cpu_seconds"]["from"]
    total = measured(journal.record, key)["total"]
    assert abs(sum(window.cells.get(key, 0) for window in journal.windows) - total) < 1e-5


def test_a_collector_of_another_package_is_found_by_its_entry_point() -> None:
    folder = workplace()
    Path(folder, "battery.py").write_text(
        "from jobmeter import Across, Kind, Measurement, Quality\n"
        "LEVEL = Measurement('battery_level', 'percent', Kind.GAUGE, Across.LAST, Quality.SAMPLED, 'Charge left.')\n"
        "class Battery:\n"
        "    name, measurements, default = 'battery', (LEVEL,), frozenset()\n"
        "    def check(self, machine): pass\n"
        "    def open(self, target, wanted): return self\n"
        "    def read(self, moment): return {'battery_level': 71.5}\n"
        "    def finish(self, moment, ending): raise KeyError('gone')\n"
        "    def close(self): pass\n"
    )
    Path(folder, "battery-1.dist-info").mkdir()
    Path(folder, "battery-1.dist-info", "METADATA").write_text("Metadata-Version: 2.1\nName: battery\nVersion: 1\n")
    Path(folder, "battery-1.dist-info", "entry_points.txt").write_text(
        "[jobmeter.collectors]\nbattery = battery:Battery\n"
    )
    settings = environment()
    settings["PYTHONPATH"] += f":{folder}"
    report = f"{folder}/r.json"
    done = jobmeter("run", "--measurements", "battery_level", "--report", report, "--", "sleep", "0.2", env=settings)
    assert done.returncode == 0, done.stderr
    record = json.loads(Path(report).read_text())
    assert record["measurements"]["battery_level"]["peak"] == 71.5
    assert record["provenance"]["collectors"]["battery"] == {"available": True, "failed": "KeyError: 'gone'"}
