"""GPUs that were requested against those that were used: over-use, waste, advice, findings."""

from __future__ import annotations

from typing import Any

import pytest

from jobmeter.analyse.correction import corrections
from jobmeter.analyse.findings import findings
from jobmeter.analyse.overuse import overuses
from jobmeter.analyse.size.predictor import advise
from jobmeter.analyse.stored_run import of_record
from jobmeter.analyse.waste import wasted_requests
from jobmeter.model import Requirement
from jobmeter.report.requests import waste_text
from jobmeter.report.size_formats import FORMATS, render_sizes
from tests.runs import record


def run(requested: int | None, used: int, seconds: float = 3600.0, **figures: Any) -> Any:
    requirement = {} if requested is None else {"gpus": requested}
    return record("r1", requirement=requirement, wall_seconds=seconds, gpus_peak=used, **figures)


def kinds(of: Any) -> list[str]:
    return [finding.kind for finding in findings(of)]


def test_more_gpus_than_requested_are_over_use_and_as_many_are_not() -> None:
    assert ["gpus"] == [verdict.resource.key for verdict in overuses(of_record(run(1, 2)))]
    assert [] == overuses(of_record(run(2, 2)))
    assert [] == overuses(of_record(run(None, 2)))


@pytest.mark.parametrize(("requested", "used", "less"), [(2, 1, 1), (8, 7, 1), (1, 0, 1), (4, 4, 0)])
def test_every_gpu_without_a_process_is_waste(requested: int, used: int, less: int) -> None:
    wasted = wasted_requests([of_record(run(requested, used))])
    assert less == sum(waste.less for waste in wasted)
    if wasted:
        assert f"{less} less would free {less} GPU-h a run" in waste_text(wasted[0])


def test_a_run_whose_driver_stopped_answering_is_no_waste() -> None:
    unsure = run(2, 1)
    unsure["usage"]["gpus_peak"]["quality"] = "at least"
    assert [] == wasted_requests([of_record(unsure)])


def test_size_advises_the_most_that_any_run_was_on() -> None:
    rows = [of_record(run(4, used)) for used in (1, 2, 1)]
    advice = advise("train", rows)
    assert 2 == advice.requirement().gpus
    for form, words in {
        "slurm": "#SBATCH --gpus=2", "docker": "--gpus=2", "k8s": "nvidia.com/gpu: 2", "ray": "num_gpus=2",
        "yaml": "num_gpus: 2", "compose": "count: 2",
    }.items():  # fmt: skip
        assert form in FORMATS
        assert words in render_sizes(form, [advice])


def test_a_job_without_gpus_gets_no_advice_about_them() -> None:
    assert advise("train", [of_record(run(None, 0))]).requirement().gpus is None


def test_a_spec_is_corrected_to_what_was_used() -> None:
    (verdict,) = overuses(of_record(run(1, 3)))
    assert Requirement(gpus=3) == corrections([verdict], Requirement(), Requirement(gpus=1))


@pytest.mark.parametrize(
    ("busy", "expected"), [(0.0, ["idle_gpu"]), (179.0, ["idle_gpu"]), (181.0, []), (3600.0, [])]
)  # 5 % of an hour is 180 s
def test_a_gpu_that_hardly_worked_is_idle(busy: float, expected: list[str]) -> None:
    assert expected == kinds(run(1, 1, gpu_seconds=busy))


def test_gpus_that_were_requested_and_never_used_did_nothing() -> None:
    texts = [finding.text for finding in findings(run(2, 0)) if finding.kind == "idle_gpu"]
    assert ["Its 2 GPUs did nothing."] == texts


def test_a_full_gpu_and_one_that_was_slowed_down_are_reported() -> None:
    of = run(None, 1, gpu_seconds=3000.0)
    of["measurements"] = {
        "nvml_memory_percent": {"unit": "percent", "kind": "gauge", "peak": 97.5},
        "nvml_throttled_seconds": {"unit": "seconds", "kind": "counter", "total": 720.0},
    }
    of["devices"] = [{"kind": "gpu", "source": "nvml", "index": 0, "throttled_by": ["heat"]}]
    assert ["gpu_memory", "gpu_throttled"] == kinds(of)
    assert "Its GPU was slowed down for 12m 0s: heat." in [finding.text for finding in findings(of)]
