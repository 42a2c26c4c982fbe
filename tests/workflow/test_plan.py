from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from jobmeter.engines.contract import Capacity
from jobmeter.errors import UsageError
from jobmeter.model import Requirement
from jobmeter.workflow.plan import Monitor, Retry, check_fit, load_plan
from tests.workflow.spec.writing import job_of, plan_of, refusal_of, write

EXAMPLE = Path(__file__).parents[2] / "examples" / "workflow" / "pipeline.yaml"


def test_the_example_of_the_issue_is_planned_as_it_stands() -> None:
    plan = load_plan(str(EXAMPLE))

    assert plan.name == "ML Training Pipeline"
    assert plan.user == "researcher"
    assert plan.path == str(EXAMPLE)
    assert plan.monitor == Monitor(enabled=True, granularity="time_series", interval=2.0, generate_plots=False)
    first, second = plan.jobs
    assert first.number == 1
    assert first.name == first.step == "preprocess_data"
    assert first.requirement == Requirement(cpus=4, memory_bytes=8 * 2**30, runtime_seconds=600)
    assert first.directory == str(EXAMPLE.parent)
    assert first.script == "python preprocess.py --input data.csv --output processed.pkl"
    assert second.blocked_by == (1,)
    assert second.requirement == Requirement(cpus=8, memory_bytes=32 * 2**30, runtime_seconds=7200)
    assert second.requirement_name == "big"
    assert second.retry == Retry()


def test_the_same_spec_in_json_and_toml_gives_the_same_jobs(tmp_path: Path) -> None:
    yaml = plan_of(
        tmp_path,
        "jobs:\n- name: a_{i}\n  command: [echo, '{i}']\n  parameters: {i: [1, 2.50]}\n"
        "  retry: {times: 2, on: [oom, 3]}\n"
        "  resource_requirements: {cpus: 1.5, memory: 1048576, runtime: 01:30:00}\n  labels: {v: 1.10}\n",
    )
    text = json.dumps(
        {
            "jobs": [
                {
                    "name": "a_{i}",
                    "command": ["echo", "{i}"],
                    "parameters": {"i": [1, "2.50"]},
                    "retry": {"times": 2, "on": ["oom", 3]},
                    "resource_requirements": {"cpus": 1.5, "memory": 1048576, "runtime": 5400},
                    "labels": {"v": "1.10"},
                }
            ]
        }
    )
    toml = (
        '[[jobs]]\nname = "a_{i}"\ncommand = ["echo", "{i}"]\nparameters = {i = [1, 2.50]}\n'
        'retry = {times = 2, on = ["oom", 3]}\nlabels.v = 1.10\n'
        "[jobs.resource_requirements]\ncpus = 1.5\nmemory = 1_048_576\nruntime = 01:30:00\n"
    )

    assert yaml.jobs == plan_of(tmp_path, text, "spec.json").jobs
    assert yaml.jobs == plan_of(tmp_path, toml, "spec.toml").jobs
    assert [job.name for job in yaml.jobs] == ["a_1", "a_2.50"]
    assert yaml.jobs[0].requirement == Requirement(1.5, 1048576, 5400)


def test_a_workflow_without_a_name_is_named_after_its_file(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, "jobs: [{name: a, command: x}]", "night run.yml")

    assert plan.name == "night run"
    assert plan.monitor == Monitor()
    assert plan.enforce is False


def test_scalars_mean_what_their_field_is_for(tmp_path: Path) -> None:
    """No key `on` that is true, no 01:30:00 to the base of 60, no version 1.10 that becomes 1.1."""
    job = job_of(
        tmp_path,
        "env: {A: 1.10, B: yes, C: 0x10, D: 08, E: }, labels: {on: off, v: 8e3}, priority: -3, "
        "retry: {times: 1, on: timeout}, resource_requirements: {runtime: 01:30:00}",
    )

    assert job.environment == {"A": "1.10", "B": "yes", "C": "0x10", "D": "08", "E": ""}
    assert job.labels == {"on": "off", "v": "8e3"}
    assert job.priority == -3
    assert job.retry == Retry(times=1, on=frozenset({"timeout"}))
    assert job.requirement.runtime_seconds == 5400


def test_a_colon_in_braces_is_no_error(tmp_path: Path) -> None:
    job = job_of(tmp_path, "container: {image: python:3.12, volumes: [/a:/b]}, parameters: {i: 1:1}")

    assert job.container == {"image": "python:3.12", "mounts": ["/a:/b"]}
    assert job.labels == {"i": "1"}


def test_a_container_may_be_its_image_alone(tmp_path: Path) -> None:
    assert job_of(tmp_path, "container: 'debian:{i}', parameters: {i: 12}").container == {"image": "debian:12"}


def test_a_number_of_retries_alone_is_enough(tmp_path: Path) -> None:
    assert job_of(tmp_path, "retry: 2").retry == Retry(times=2)


def test_exit_codes_are_kept_apart_from_causes(tmp_path: Path) -> None:
    job = job_of(tmp_path, "retry: {times: 3, on: [oom, 75, 137], grow: {memory: 2}}")

    assert job.retry == Retry(3, frozenset({"oom"}), frozenset({75, 137}), memory_factor=2.0, runtime_factor=1.5)


def test_directories_and_files_are_absolute(tmp_path: Path) -> None:
    job = job_of(tmp_path, "cwd: sub/../work, inputs: [in.txt, /data/x], outputs: ../out.txt")

    assert job.directory == f"{tmp_path}/work"
    assert job.inputs == (f"{tmp_path}/work/in.txt", "/data/x")
    assert job.outputs == (f"{tmp_path}/out.txt",)


def test_gpus_are_a_part_of_the_request(tmp_path: Path) -> None:
    job = job_of(tmp_path, "resource_requirements: {num_gpus: 2}")

    assert job.gpus == 2
    assert job.requirement.gpus == 2


def test_anchors_and_merge_keys_are_understood(tmp_path: Path) -> None:
    plan = plan_of(
        tmp_path,
        "x-small: &small {cpus: 1, memory: 1g}\njobs:\n- {name: a, command: x, resource_requirements: *small}\n"
        "- {name: b, command: x, resource_requirements: {<<: *small, memory: 2g}}\n",
    )

    assert [job.requirement[:2] for job in plan.jobs] == [(1, 2**30), (1, 2**31)]


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_line_ends_and_a_byte_order_mark_do_not_matter(tmp_path: Path, ending: str, mark: str) -> None:
    text = mark + "jobs:\n- name: é\n  command: |\n    true\n    false\n".replace("\n", ending)

    (job,) = plan_of(tmp_path, text).jobs
    assert job.name == "é"
    assert job.script == "true\nfalse"


def test_jobs_that_fit_pass_and_one_that_never_can_is_named_with_the_options(tmp_path: Path) -> None:
    jobs = load_plan(str(EXAMPLE)).jobs

    check_fit(jobs, Capacity(8, 32 * 2**30, 0))
    check_fit(jobs, Capacity(8, None, 0))
    with pytest.raises(UsageError, match=r"'preprocess_data' requests 4 cpus, and there are 2: .* --cpus, --memory or"):
        check_fit(jobs, Capacity(2, None, 0))
    with pytest.raises(UsageError, match=r"'train_model' requests 32 GiB of memory, and there are 16 GiB"):
        check_fit(jobs, Capacity(8, 16 * 2**30, 0))
    with pytest.raises(UsageError, match=r"34,359,738,368 bytes of memory, and there are 34,359,738,367 bytes"):
        check_fit(jobs, Capacity(8, 32 * 2**30 - 1, 0))
    with pytest.raises(UsageError, match=r"requests 1 gpus, and there are none"):
        check_fit([job_of(tmp_path, "resource_requirements: {gpus: 1}")], Capacity(8, None, 0))


def test_one_job_may_request_no_more_than_the_largest_machine_has_and_anything_of_an_engine_without_bounds() -> None:
    jobs = load_plan(str(EXAMPLE)).jobs

    check_fit(jobs, Capacity())
    with pytest.raises(UsageError, match=r"'preprocess_data' requests 4 cpus, and there are 2"):
        check_fit(jobs, Capacity(64, largest=Requirement(cpus=2)))


def test_the_types_of_a_plan_cost_no_import_of_pydantic_or_yaml() -> None:
    code = "import sys, jobmeter.workflow.plan; print([n for n in ('pydantic', 'ruamel.yaml') if n in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout == "[]\n"


def test_a_plan_is_the_same_with_the_slow_parser(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path, EXAMPLE.read_bytes())
    quick = load_plan(path)
    monkeypatch.setitem(sys.modules, "_ruamel_yaml", None)

    assert load_plan(path) == quick


def test_a_wrong_spec_gives_one_line_also_with_the_slow_parser(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    quick = refusal_of(tmp_path, "jobs: [\n- a")
    monkeypatch.setitem(sys.modules, "_ruamel_yaml", None)

    assert refusal_of(tmp_path, "jobs: [\n- a") == quick
