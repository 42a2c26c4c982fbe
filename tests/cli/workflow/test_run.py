from __future__ import annotations

import json
import os
import re
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from tests.parts import need_root
from tests.running import NOBODY, USERS, workplace
from tests.workflow.live import ON_BOTH_ENGINES, Place, running_in

MIB = 2**20
TRIVIAL = "name: trivial\njobs: [{name: a, command: 'true'}, {name: b, command: 'echo hello', blocked_by: [a]}]\n"
LOADS = """
name: known loads
resource_monitor: {{granularity: {granularity}, sample_interval_seconds: 0.2, enabled: {enabled}}}
jobs:
  - name: hog
    command: [{python}, -c, "import time; x = b'x' * (200 << 20); time.sleep(1.5)"]
    resource_requirements: {{memory: 400m}}
  - name: spinner
    command: [{python}, -c, "import time\\nwhile time.process_time() < 1.2: pass"]
    resource_requirements: {{cpus: 1}}
"""


def known_loads(granularity: str = "summary", enabled: str = "true") -> str:
    return LOADS.format(python=sys.executable, granularity=granularity, enabled=enabled)


@USERS
def test_a_workflow_runs_and_its_jobs_are_kept_with_their_logs(user: int) -> None:
    place = Place(Path(workplace()), user)
    done = place.run(TRIVIAL)
    assert (0, "") == (done.returncode, done.stdout), done.stderr
    assert "workflow trivial completed" in done.stderr
    assert {"a": "completed", "b": "completed"} == place.statuses()
    assert "hello\n" == place.log("b")


def test_quiet_says_nothing(place: Place) -> None:
    done = place.run(TRIVIAL, "--quiet")
    assert (0, "", "") == (done.returncode, done.stdout, done.stderr)


@ON_BOTH_ENGINES
def test_a_failing_job_blocks_those_that_need_it_and_the_exit_code_is_1(place: Place) -> None:
    spec = """
name: failing
jobs:
  - {name: bad, command: 'echo the reason >&2; exit 3'}
  - {name: near, command: 'touch near', blocked_by: [bad]}
  - {name: far, command: 'touch far', blocked_by: [near]}
  - {name: other, command: 'touch other'}
"""
    done = place.run(spec)
    assert 1 == done.returncode
    assert "bad failed with exit code 3: the reason" in done.stderr
    assert "near is blocked: it needs bad, which failed" in done.stderr
    assert {"bad": "failed", "near": "blocked", "far": "blocked", "other": "completed"} == place.statuses()
    assert ["other"] == [name for name in ("near", "far", "other") if (place.folder / name).exists()]


def test_a_directory_that_is_gone_when_a_job_begins_fails_that_job_alone(place: Place) -> None:
    (place.folder / "there").mkdir()
    done = place.run("""
jobs:
  - {name: removes, command: rmdir there}
  - {name: bad, command: "true", cwd: there, blocked_by: removes}
  - {name: good, command: "true", blocked_by: removes}
""")
    assert (1, {"removes": "completed", "bad": "failed", "good": "completed"}) == (done.returncode, place.statuses())
    assert 125 == place.result("bad")["return_code"]


@ON_BOTH_ENGINES
def test_a_job_that_does_not_make_its_outputs_has_failed_and_says_which(place: Place) -> None:
    done = place.run("""
jobs:
  - {name: maker, command: "touch one", outputs: [one, two]}
  - {name: user, command: "cat two", inputs: [two]}
""")
    assert (1, {"maker": "failed", "user": "blocked"}) == (done.returncode, place.statuses())
    assert "jobmeter: maker: it did not make two  [" in done.stderr


@ON_BOTH_ENGINES
@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ("command: 'no-such-program --now'", 127),
        ("command: [no-such-program, --now]", 127),
        ("command: './plain-file'", 126),
        ("command: ['./plain-file']", 126),
        ("command: 'kill -9 $$'", 137),
    ],
)
def test_a_command_that_cannot_run_fails_its_job_and_not_the_runner(place: Place, fields: str, code: int) -> None:
    place.write("data", "plain-file").chmod(0o644)
    done = place.run(f"jobs: [{{name: bad, {fields}}}, {{name: good, command: 'true'}}]")
    assert 1 == done.returncode
    assert "Traceback" not in done.stderr
    codes = {each["name"]: each["return_code"] for each in place.results()}
    assert {"bad": code, "good": 0} == codes
    if code != 137:
        assert place.log("bad", "err")


@pytest.fixture(scope="module")
def summarised(tmp_path_factory: pytest.TempPathFactory) -> Place:
    """A place where the known loads ran, and only a summary of each was kept."""
    place = Place(tmp_path_factory.mktemp("summarised"))
    assert 0 == place.run(known_loads()).returncode
    return place


def test_of_two_jobs_side_by_side_each_has_its_own_usage(summarised: Place) -> None:
    hog, spinner = summarised.result("hog"), summarised.result("spinner")
    assert 200 * MIB <= hog["memory_peak_bytes"] <= 230 * MIB
    assert hog["cpu_seconds"] <= 0.6
    assert 1.2 == pytest.approx(spinner["cpu_seconds"], abs=0.15)
    assert spinner["memory_peak_bytes"] <= 40 * MIB
    assert {"memory_bytes": 400 * MIB} == hog["requirement"]


def test_summary_keeps_a_header_and_a_record_of_each_job_in_one_file(summarised: Place) -> None:
    (lines,) = summarised.journals()
    shared, *rest = lines
    assert "shared" in shared
    # Runs that overlap say whose line comes next.
    kinds = sorted(next(key for key in ("record", "id") if key in line) for line in rest if set(line) != {"run"})
    assert ["id", "id", "record", "record"] == kinds
    assert {"hog", "spinner"} == {line["record"]["name"] for line in rest if "record" in line}


@ON_BOTH_ENGINES
def test_time_series_keeps_windows_at_the_interval(place: Place) -> None:
    place.run(known_loads("time_series"))
    (lines,) = place.journals()
    windows = [line for line in lines if isinstance(line, list)]
    for line in lines:
        if "record" in line:
            assert 0.2 == line["record"]["provenance"]["interval_seconds"]
    assert len(windows) >= 8


@ON_BOTH_ENGINES
@pytest.mark.parametrize(("enabled", "options"), [("false", []), ("true", ["--no-resource-monitoring"])])
def test_without_monitoring_only_time_and_exit_code_are_kept(place: Place, enabled: str, options: list[str]) -> None:
    assert 0 == place.run(known_loads("time_series", enabled), *options).returncode
    (lines,) = place.journals()
    records = [line["record"] for line in lines if "record" in line]
    assert 2 == len(records)
    for record in records:
        assert ({}, {}) == (record["usage"], record["measurements"])
        assert record["wall_seconds"] > 1
        assert 0 == record["outcome"]["exit_code"]
    assert not any(isinstance(line, list) for line in lines)


def test_the_summary_advises_a_request_after_a_job_used_more_than_its_spec_says(place: Place) -> None:
    need_root("for a limit that the kernel keeps")
    spec = f"""
name: growing
jobs:
  - name: hog
    command: [{sys.executable}, -c, "x = b'x' * (150 << 20)"]
    resource_requirements: {{memory: 100m}}
    retry: {{times: 2, grow: {{memory: 2}}}}
"""
    done = place.run(spec, "--enforce")
    assert 0 == done.returncode
    assert "hog out of memory (SIGKILL); trying again with 200 MiB" in done.stderr
    assert re.search(r"too little hog: Memory (at least )?\d+ MiB of the 100 MiB requested \(2 attempts\)", done.stderr)
    assert re.search(r"advice     hog: request memory 2\d\d MiB\n", done.stderr), done.stderr
    assert [("oom", 100 * MIB), ("completed", 200 * MIB)] == [
        (each["status"], each["requirement"]["memory_bytes"]) for each in place.results()
    ]


NAMES = ["with a space", 'it\'s "quoted"', "größe-数据-🐍", "-rf", "--help", "a" * 200, "$HOME", "a;b|c&d", "[x]{y}"]


def test_jobs_may_have_odd_names(place: Place) -> None:
    jobs = [{"name": name, "command": "echo ran"} for name in NAMES]
    spec = place.write(json.dumps({"name": "odd", "jobs": jobs}), "odd.json")
    done = place.call("run", str(spec))
    assert 0 == done.returncode, done.stderr
    assert dict.fromkeys(NAMES, "completed") == place.statuses("odd")
    for name in NAMES:
        assert "ran\n" == place.log(name)
    assert 0 == place.call("results", "odd").returncode
    assert 0 == place.call("status", "odd").returncode


@pytest.mark.parametrize("closed", ["0<&-", "1>&-", "2>&-", "0<&- 1>&- 2>&-"])
def test_streams_that_are_closed_cost_nothing(place: Place, closed: str) -> None:
    spec = place.write(
        "name: closed\njobs: [{name: a, command: 'echo out; echo err >&2'}, {name: b, command: 'exit 3'}]"
    )
    words = ["sh", "-c", f'exec "$@" {closed}', "sh", *place.command("run", str(spec))]
    done = subprocess.run(words, env=place.environment(), cwd=place.folder, stderr=subprocess.PIPE, check=False)
    assert 1 == done.returncode, done.stderr
    assert {"a": "completed", "b": "failed"} == place.statuses()
    assert ("out\n", "err\n") == (place.log("a"), place.log("a", "err"))
    assert b"Traceback" not in done.stderr


@pytest.mark.parametrize("kind", ["a file", "unwritable"])
def test_a_store_that_cannot_be_written_is_one_clear_line(kind: str) -> None:
    place = Place(Path(workplace()), NOBODY if kind == "unwritable" else None)
    if kind == "a file":
        place.store.touch()
    else:
        place.store.mkdir(mode=0o555)
    done = place.run("jobs: [{name: a, command: 'touch began'}]")
    assert done.returncode not in (0, 1)
    assert 1 == done.stderr.count("\n"), done.stderr
    assert str(place.store) in done.stderr
    assert "--store" in done.stderr
    assert not (place.folder / "began").exists()


def test_a_file_system_that_is_full_fails_jobs_in_words_and_not_the_runner(place: Place) -> None:
    """Files may not grow beyond 64 KiB, which stands for a full disk."""
    spec = """
name: full
jobs:
  - {name: "loud_{i}", command: "head -c 200000 /dev/zero", parameters: {i: "1:3"}}
  - {name: "quiet_{i}", command: "true", parameters: {i: "1:60"}, priority: -1}
"""
    limit = 64 * 1024
    done = place.run(spec, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)))
    assert 1 == done.returncode
    assert "Traceback" not in done.stderr
    assert 1 == done.stderr.count("the journal is incomplete"), done.stderr
    assert "60 completed" in done.stderr
    assert limit == os.path.getsize(next(place.store.glob("workflows/full/1/logs/loud_1.1.out")))


def test_two_runs_of_a_spec_at_one_time_are_two_runs(place: Place) -> None:
    spec = (
        "name: twice\njobs: [{name: a, command: 'echo $$ >>pids; until [ $(wc -l <pids) = 2 ]; do sleep 0.02; done'}]"
    )
    first, second = place.start_run(spec), place.start_run(spec)
    assert [0, 0] == [first.wait(), second.wait()]
    for process in (first, second):
        process.communicate()
    assert [1, 1] == [len(place.results("twice", "--run-id", number)) for number in ("1", "2")]


def test_the_shepherd_in_python_does_as_well(place: Place) -> None:
    environment = {**place.environment(), "JOBMETER_SHEPHERD": "python"}
    spec = "name: py\njobs: [{name: a, command: exit 3}, {name: b, command: echo hello}, {name: c, command: [nowhere]}]"
    done = place.run(spec, env=environment)
    assert 1 == done.returncode
    assert {"a": "failed", "b": "completed", "c": "failed"} == place.statuses()
    assert 127 == place.result("c")["return_code"]


def test_more_jobs_at_a_time_than_files_may_be_open_still_run(place: Place) -> None:
    spec = "name: many\njobs:\n- {name: 'a_{i}', command: 'ulimit -n; sleep 0.5', parameters: {i: '1:120'}, resource_requirements: {cpus: 0.01}}"  # noqa: E501
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    done = place.run(spec, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (512, limits[1])))
    assert 0 == done.returncode, done.stderr
    assert "512\n" == place.log("a_7")


def test_few_files_that_may_be_open_make_jobs_wait_and_not_fail(place: Place) -> None:
    spec = "name: few\njobs:\n- {name: 'a_{i}', command: 'true', parameters: {i: '1:40'}, resource_requirements: {cpus: 0.01}}"  # noqa: E501
    done = place.run(spec, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256)))
    assert 0 == done.returncode, done.stderr


@ON_BOTH_ENGINES
def test_daemons_of_jobs_end_with_them(place: Place) -> None:
    spec = "name: daemons\njobs: [{name: a, command: 'setsid sh -c \"exec sleep 60\" & setsid sleep 60 & true'}]"
    assert 0 == place.run(spec).returncode
    assert [] == running_in(place.folder)
