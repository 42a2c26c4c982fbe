"""What is pasted must be read by those it is for."""

from __future__ import annotations

import ast
import re
from typing import Any

import pytest
from ruamel.yaml import YAML

from jobmeter.analyse.size.advice import Advice
from jobmeter.analyse.size.predictor import advise
from jobmeter.report.size_formats import FORMATS, iso_duration, memory_word, render_sizes, slurm_time
from jobmeter.units import parse_bytes, parse_seconds

GIB = 2**30


def advice(name: str = "train_model", seconds: float = 6000.0, **fields: Any) -> Advice:
    row = {
        "id": "a", "name": name, "status": "completed", "wall_seconds": seconds, "memory_peak_bytes": 10.5 * GIB,
        "memory_quality": "exact", "cpu_peak_percent": 390.0, "cpu_mean_percent": 123.0, "cpu_seconds": 1.23 * seconds,
        **fields,
    }  # fmt: skip
    return advise(name, [row] * 20)


def documents(form: str, *advised: Advice) -> list[Any]:
    return list(YAML(typ="safe").load_all(render_sizes(form, advised)))


@pytest.mark.parametrize("form", FORMATS)
def test_each_of_several_jobs_is_named_in_a_comment(form: str) -> None:
    text = render_sizes(form, [advice("one"), advice("two words\n")])
    assert ["one", r"two words\n"] == re.findall(r"^ *(?:#|//) (one|two words\\n)$", text, re.MULTILINE)


def test_slurm_takes_the_lines_of_a_batch_script() -> None:
    lines = render_sizes("slurm", [advice()]).splitlines()
    assert "# train_model" == lines[0]
    for pattern, line in zip((r"--mem=\d+M", r"--cpus-per-task=4", r"--time=(\d+-)?\d\d:\d\d:\d\d"), lines[1:]):
        assert re.fullmatch(f"#SBATCH {pattern}", line), line


@pytest.mark.parametrize(
    ("seconds", "expected"), [(2700, "00:45:00"), (93600, "1-02:00:00"), (7.2, "00:00:08"), (86400, "1-00:00:00")]
)
def test_slurms_times_have_days_from_a_day_on(seconds: float, expected: str) -> None:
    assert expected == slurm_time(seconds)
    assert pytest.approx(seconds, abs=1) == parse_seconds(expected)


@pytest.mark.parametrize(("seconds", "expected"), [(9900, "PT2H45M"), (45, "PT45S"), (3600, "PT1H"), (90000, "PT25H")])
def test_our_own_times_are_iso_8601(seconds: float, expected: str) -> None:
    assert (expected, seconds) == (iso_duration(seconds), parse_seconds(expected))


@pytest.mark.parametrize(("size", "expected"), [(12 * GIB, "12g"), (1.5 * GIB, "1536m"), (16 << 20, "16m")])
def test_memory_is_a_whole_number_with_a_letter(size: float, expected: str) -> None:
    assert (expected, size) == (memory_word(size), parse_bytes(expected))


def test_docker_takes_the_options() -> None:
    assert re.fullmatch(r"# train_model\n--memory=\d+[mg] --cpus=4", render_sizes("docker", [advice()]))


def test_compose_has_limits_and_reservations() -> None:
    (spaced,) = documents("compose", advice("fit - {i:03d}: large"))
    assert ["fit-i-03d-large"] == list(spaced["services"])
    (document,) = documents("compose", advice("train model"), advice("2"))
    assert ["train-model", "2"] == list(document["services"])
    resources = document["services"]["train-model"]["deploy"]["resources"]
    assert ("4", "1.3") == (resources["limits"]["cpus"], resources["reservations"]["cpus"])
    sizes = [resources[part]["memory"] for part in ("limits", "reservations")]
    assert all(re.fullmatch(r"\d+M", size) for size in sizes)
    assert parse_bytes(sizes[0]) >= parse_bytes(sizes[1]) >= 10.5 * GIB


def test_kubernetes_has_requests_and_limits() -> None:
    first, second = documents("k8s", advice(), advice("other"))
    assert first == second
    resources = first["resources"]
    assert ("1.3", "4") == (resources["requests"]["cpu"], resources["limits"]["cpu"])
    assert resources["requests"]["memory"] == resources["limits"]["memory"]
    assert re.fullmatch(r"\d+Mi", resources["limits"]["memory"])


def test_rays_options_are_python() -> None:
    text = render_sizes("ray", [advice("train_model"), advice("class"), advice("not a name")])
    calls = [node.value for node in ast.parse(text).body if isinstance(node, ast.Expr)]
    names = [ast.unparse(call.func) for call in calls if isinstance(call, ast.Call)]
    assert ["train_model.options", "task.options", "task.options"] == names
    values = {
        word.arg: ast.unparse(word.value) for call in calls if isinstance(call, ast.Call) for word in call.keywords
    }
    assert ("4", True) == (values["num_cpus"], bool(re.fullmatch(r"\d+ \* 2 \*\* 20", values["memory"])))


def test_yaml_is_an_entry_of_our_specs() -> None:
    (document,) = documents("yaml", advice(), advice("no"))
    entry, other = document["resource_requirements"]
    assert ("train_model", 4, "no") == (entry["name"], entry["num_cpus"], other["name"])
    assert parse_bytes(str(entry["memory"])) > 10.5 * GIB
    assert parse_seconds(entry["runtime"]) > 6000


@pytest.mark.parametrize("form", FORMATS)
def test_what_is_not_known_is_left_out(form: str) -> None:
    unknown = advise("train", [{"id": "a", "name": "train", "status": "completed", "wall_seconds": 5.0}])
    assert "None" not in render_sizes(form, [unknown])


def followed(feature: str = "bytes") -> list[Advice]:
    """A job whose memory is 100 MiB and 50 bytes for each byte of its input."""
    rows = [
        {
            "id": f"r{number}", "name": "align", "status": "completed", "wall_seconds": 60.0,
            "memory_peak_bytes": 100 * 2**20 + 50 * number * 10**6, "memory_quality": "exact",
            "labels": {feature: str(number * 10**6)},
        }
        for number in range(1, 31)
    ]  # fmt: skip
    return [advise("align", rows)]


def test_nextflow_retries_with_more_and_follows_the_input() -> None:
    plain = render_sizes("nextflow", followed("mesh"))
    assert re.search(r"withName: 'align' \{\n.*memory \{ \d+\.MB \* task\.attempt \}", plain, re.DOTALL)
    assert "time { 62.s * task.attempt }" in plain
    assert "task.exitStatus in [137, 140] ? 'retry' : 'finish'" in plain
    assert plain.count("{") == plain.count("}")
    closure = next(line for line in render_sizes("nextflow", followed()).splitlines() if "new MemoryUnit" in line)
    match = re.search(r"Math\.max\((\S+) \+ (\S+) \* inputBytes,", closure)
    assert match is not None
    base, scale = float(match[1]), float(match[2])
    for size in (1e6, 2e7, 3e7):
        assert 1 <= (base + scale * size) / (100 * 2**20 + 50 * size) < 1.3


def test_snakemake_gives_functions_of_attempt_and_input() -> None:
    plain = render_sizes("snakemake", followed("mesh"))
    assert re.search(r"mem_mib=lambda wildcards, attempt: \d+ \* attempt,", plain)
    text = next(line for line in render_sizes("snakemake", followed()).splitlines() if "mem_mib" in line)
    function = eval(text.strip().removeprefix("mem_mib=").rstrip(","))

    class Input:
        size = 2 * 10**7

    once, twice = (function(None, Input, attempt) for attempt in (1, 2))
    assert 1 <= once * 2**20 / (100 * 2**20 + 50 * Input.size) < 1.3
    assert 2 * once == twice
