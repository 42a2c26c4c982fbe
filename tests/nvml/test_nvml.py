"""NVIDIA GPUs: our collector and the real client of the library, on a library that reports what the test sets."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.nvml.driver import StubDriver

GIB = 2**30
UNTIL_SAMPLED = "until_sampled()"


@pytest.fixture
def driver(tmp_path: Path) -> StubDriver:
    return StubDriver(tmp_path)


def gpu(number: int, pids: str = "", **more: Any) -> dict[str, Any]:
    figures: dict[str, Any] = {
        "busy": 50,
        "used": 4 * GIB,
        "total": 16 * GIB,
        "power": 100_000,
        "energy_rate": 100,
        "celsius": 61,
    }
    figures |= {"clocks": 0, "pids": pids, **more}
    return {f"gpu{number}.{name}": value for name, value in figures.items()}


def state(record: Any) -> Any:
    return record["provenance"]["collectors"]["nvml"]


def test_the_figures_are_those_of_the_gpu_that_the_job_is_on(driver: StubDriver) -> None:
    driver.say({"gpus": 2, **gpu(0, "1:77"), **gpu(1, f"ME:{3 * GIB}", celsius=70, clocks=0x24)})
    record = driver.run("until_sampled(60)", "--interval", "0.2")
    measured = record["measurements"]
    assert 1 == measured["nvml_gpus"]["peak"]
    assert 3 * GIB == measured["nvml_memory"]["peak"] == record["usage"]["gpu_memory_peak_bytes"]["value"]
    assert 25.0 == measured["nvml_memory_percent"]["peak"]
    assert 50.0 == measured["nvml_percent"]["peak"]
    assert 100.0 == measured["nvml_power"]["peak"]
    assert 70 == measured["nvml_temperature"]["peak"]
    assert {"power cap": 0.5, "heat": 0.5} == measured["nvml_clocks"]["share"]
    # Half of the time at 100 W: both over the same time, however long that was. They are read one after the other.
    busy, energy = measured["nvml_busy_seconds"]["total"], measured["nvml_energy"]["total"]
    assert busy > 0
    assert energy / 200 == pytest.approx(busy, rel=0.2)
    assert "sampled" == record["usage"]["gpu_seconds"]["quality"]
    (device,) = record["devices"]
    assert (1, "GPU-10000000", "Stub gpu1", 16 * GIB) == tuple(
        device[name] for name in ("index", "uuid", "name", "memory_bytes")
    )
    assert 3 * GIB == device["processes"][0]["memory_peak_bytes"]
    assert ["power cap", "heat"] == device["throttled_by"]
    assert {"available": True} == state(record)


def test_a_job_without_gpu_has_none(driver: StubDriver) -> None:
    driver.say({"gpus": 1, **gpu(0, "1:77")})
    record = driver.run(UNTIL_SAMPLED, "--interval", "0.2")
    assert 0 == record["measurements"]["nvml_gpus"]["peak"]
    assert "nvml_memory" not in record["measurements"]
    assert "gpu_seconds" not in record["usage"]
    assert "devices" not in record


def test_what_several_processes_of_the_job_hold_on_two_gpus_is_added_up(driver: StubDriver) -> None:
    driver.say({"gpus": 2, **gpu(0, "ME:1000"), **gpu(1, "ME:500")})
    record = driver.run(UNTIL_SAMPLED, "--interval", "0.2")
    assert 2 == record["measurements"]["nvml_gpus"]["peak"]
    assert 1500 == record["measurements"]["nvml_memory"]["peak"]
    assert 100.0 == record["measurements"]["nvml_percent"]["peak"]


def test_who_held_the_gpu_memory_when_there_was_most_of_it(driver: StubDriver) -> None:
    driver.say({"gpus": 2, **gpu(0, f"ME:{GIB},1:77"), **gpu(1, f"ME:{GIB // 2}")})
    falls = f"open(path + '.new', 'w').write(text.replace('{GIB}', '5')); os.rename(path + '.new', path)"
    record = driver.run(f"{UNTIL_SAMPLED}\n{falls}\n{UNTIL_SAMPLED}", "--interval", "0.2")
    (peak,) = [peak for peak in record["peaks"] if peak.get("kind") == "gpu"]
    (holder,) = peak["processes"]
    assert GIB + GIB // 2 == peak["bytes"] == holder["bytes"] == record["usage"]["gpu_memory_peak_bytes"]["value"]
    assert "python" in holder["cmd"]
    assert 0 <= peak["seconds"] < record["wall_seconds"]
    shown = driver.jobmeter("show", "last").stdout
    (line,) = [line for line in shown.splitlines() if line.startswith("GPU peak")]
    assert line.endswith(" 1.5 GiB")


def test_of_a_gpu_that_others_use_too_the_job_has_its_share(driver: StubDriver) -> None:
    driver.say({"gpus": 1, **gpu(0, "ME:1000,1:3000", busy=80, sm="ME:20,1:60")})
    record = driver.run(UNTIL_SAMPLED, "--interval", "0.2")
    assert 20.0 == record["measurements"]["nvml_percent"]["peak"]
    assert 1000 == record["measurements"]["nvml_memory"]["peak"]
    assert "sampled" == record["usage"]["gpu_seconds"]["quality"]


def test_where_the_share_is_unknown_the_figure_is_called_shared(driver: StubDriver) -> None:
    driver.say({"gpus": 1, **gpu(0, "ME:1000,1:3000", busy=80)})
    record = driver.run(UNTIL_SAMPLED, "--interval", "0.2")
    assert 80.0 == record["measurements"]["nvml_percent"]["peak"]
    assert "shared" == record["usage"]["gpu_seconds"]["quality"]
    assert "sampled" == record["usage"]["gpu_memory_peak_bytes"]["quality"]


def test_a_gpu_that_the_environment_names_is_the_jobs_also_when_it_idles(driver: StubDriver) -> None:
    driver.say({"gpus": 2, **gpu(0, busy=0), **gpu(1, busy=0)})
    record = driver.run("time.sleep(12)", "--gpus", "1", CUDA_VISIBLE_DEVICES="GPU-1")
    assert [1] == [device["index"] for device in record["devices"]]
    assert 0 == record["measurements"]["nvml_gpus"]["peak"]
    assert 0 == record["usage"]["gpu_seconds"]["value"]
    assert "idle_gpu" in [finding["kind"] for finding in record["findings"]]


def test_an_instance_of_a_divided_gpu_has_memory_and_processes_of_its_own(driver: StubDriver) -> None:
    divided = gpu(0, mig=2, busy="!3", pids="!3")
    first = {"gpu0.0.used": 10, "gpu0.0.total": 5 * GIB, "gpu0.0.pids": "1:10"}
    second = {"gpu0.1.used": 2 * GIB, "gpu0.1.total": 10 * GIB, "gpu0.1.pids": f"ME:{GIB}", "gpu0.1.sm": "ME:40"}
    driver.say({"gpus": 1, **divided, **first, **second})
    record = driver.run(UNTIL_SAMPLED, "--interval", "0.2")
    (device,) = record["devices"]
    assert (0, 1, "MIG-01000000", 10 * GIB, GIB) == tuple(
        device[name] for name in ("index", "instance", "uuid", "memory_bytes", "memory_peak_bytes")
    )
    assert 40.0 == record["measurements"]["nvml_percent"]["peak"]
    assert 20.0 == record["measurements"]["nvml_memory_percent"]["peak"]
    assert 100.0 == record["measurements"]["nvml_power"]["peak"]
    assert "shared" == record["usage"]["energy_joules"]["quality"]


def test_a_driver_without_newer_functions_gives_the_rest(tmp_path: Path) -> None:
    driver = StubDriver(tmp_path, "-DOLD")
    driver.say({"gpus": 1, **gpu(0, "ME:1000", clocks=0x40)})
    record = driver.run(UNTIL_SAMPLED, "--interval", "0.2")
    measured = record["measurements"]
    assert 1000 == measured["nvml_memory"]["peak"]
    assert {"heat": 1.0} == measured["nvml_clocks"]["share"]
    # Without a counter, from the power.
    assert measured["nvml_energy"]["total"] / 200 == pytest.approx(measured["nvml_busy_seconds"]["total"], rel=0.05)
    assert {"available": True} == state(record)


def test_an_error_of_one_function_loses_that_figure_alone_and_is_recorded(driver: StubDriver) -> None:
    driver.say({"gpus": 1, **gpu(0, "ME:1000", power="!999")})
    record = driver.run(UNTIL_SAMPLED, "--interval", "0.2")
    assert "nvml_power" not in record["measurements"]
    assert 1000 == record["measurements"]["nvml_memory"]["peak"]
    assert {"available": True, "failed": "GPU 0, power: Unknown Error"} == state(record)


@pytest.mark.parametrize("when", ["from the start", "in mid-run"])
def test_a_driver_that_hangs_costs_its_own_figures_and_nothing_else(driver: StubDriver, when: str) -> None:
    driver.say({"gpus": 1, **gpu(0, "ME:1000"), **({"hang": 1} if when == "from the start" else {})})
    hang = 'until_sampled(); open(path, "a").write("hang 1\\n")' if when == "in mid-run" else "pass"
    record = driver.run(f"{hang}; time.sleep(2.5)", "--interval", "0.1")
    assert "the NVIDIA driver has not answered for" in state(record)["failed"]
    # The others were read ten times a second, but for one wait.
    assert record["provenance"]["samples"] > 10
    assert record["usage"]["memory_peak_bytes"]["value"] > 0
    assert ("nvml_memory" in record["measurements"]) == (when == "in mid-run")


def test_a_gpu_that_is_lost_in_mid_run_keeps_what_it_had(driver: StubDriver) -> None:
    driver.say({"gpus": 2, **gpu(0, "ME:1000"), **gpu(1, "ME:500")})
    record = driver.run(
        'until_sampled(); open(path, "a").write("gpu0.lost 1\\n"); until_sampled()', "--interval", "0.2"
    )
    assert "GPU 0" in state(record)["failed"]
    assert 1500 == record["measurements"]["nvml_memory"]["peak"]
    assert 500 == record["measurements"]["nvml_memory"]["min"]
    assert [0, 1] == [device["index"] for device in record["devices"]]


def test_a_driver_that_cannot_start_says_why(driver: StubDriver) -> None:
    driver.say({"init": 9})
    record = driver.run("time.sleep(2.5)")
    assert {"available": False, "why": "NVIDIA driver: Driver Not Loaded"} == state(record)
    assert record["usage"]["cpu_seconds"]["value"] > 0
    (diagnosis,) = [one for one in driver.json("doctor") if one["subject"] == "nvml"]
    assert "NVIDIA driver: Driver Not Loaded" == diagnosis["says"]


def test_a_key_that_was_requested_by_name_is_refused_where_the_driver_cannot_start(driver: StubDriver) -> None:
    driver.say({"init": 9})
    done = driver.jobmeter("run", "--measurements", "nvml_power", "--", "true")
    assert 2 == done.returncode
    assert "nvml_power cannot be measured here: NVIDIA driver: Driver Not Loaded" in done.stderr


def test_without_the_client_the_record_says_what_to_install(driver: StubDriver, tmp_path: Path) -> None:
    (tmp_path / "pynvml.py").write_text("raise ImportError")
    driver.say({"gpus": 1, **gpu(0, "ME:1000")})
    source = driver.environment["PYTHONPATH"]
    record = driver.run("time.sleep(2.5)", PYTHONPATH=f"{tmp_path}:{source}")
    assert "pip install nvidia-ml-py" in state(record)["why"]


def test_a_client_that_fails_unexpectedly_at_the_start_is_not_available(driver: StubDriver, tmp_path: Path) -> None:
    (tmp_path / "pynvml.py").write_text("raise RuntimeError('odd')")
    driver.say({"gpus": 1, **gpu(0)})
    path = f"{tmp_path}:{driver.environment['PYTHONPATH']}"
    refused = driver.jobmeter("run", "--measurements", "nvml_power", "--", "true", PYTHONPATH=path)
    why = "the NVIDIA client failed: RuntimeError: odd"
    assert (2, True) == (refused.returncode, f"cannot be measured here: {why}" in refused.stderr), refused.stderr
    doctor = json.loads(driver.jobmeter("doctor", "--json", PYTHONPATH=path).stdout)
    assert [why] == [one["says"] for one in doctor if one["subject"] == "nvml"]


def test_the_command_names_no_gpu_where_there_is_no_driver(driver: StubDriver, tmp_path: Path) -> None:
    record = driver.run("", LD_LIBRARY_PATH=str(tmp_path))
    assert "nvml" not in record["provenance"]["collectors"]
