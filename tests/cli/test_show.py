from __future__ import annotations

import json

import pytest

from tests.cli.listing import Commands
from tests.runs import record
from tests.store.kept import five, journal_of


def test_the_last_run_is_shown_unless_another_is_named(jobmeter: Commands) -> None:
    jobmeter.keep()
    assert "run        ddd5  export" == jobmeter("show").out.splitlines()[0]
    assert "run        aab2  train" == jobmeter("show", "train").out.splitlines()[0]
    assert "run        aaa1  train" == jobmeter("show", "aaa").out.splitlines()[0]


def test_a_run_is_shown_with_usage_beside_requirement_source_quality_course_and_files(jobmeter: Commands) -> None:
    run = record(
        "aaa1", wall_seconds=30.0, cpu_seconds=27.0, cpu_mean_percent=90.0, memory_peak_bytes=1 << 30,
        requirement={"cpus": 2, "memory_bytes": 4 << 30, "runtime_seconds": 60}, labels={"team": "a"},
    )  # fmt: skip
    run["processes"] = [{"pid": 7, "cmd": "python x", "cpu_seconds": 26.0, "rss_peak_bytes": 1 << 29, "seconds": 30.0}]
    out = jobmeter.keep(run)("show").out
    assert [
        "run        aaa1  train",
        "outcome    completed after 30 s",
        "command    true",
        "in         /",
        "started    2026-01-31 12:00:00, by me on here",
        "labels     team=a",
        "",
        "figure        used  requested  share  quality  source",
        "wall          30 s      1m 0s   50 %",
    ] == out.splitlines()[:9]
    assert "cpu_mean      90 %      200 %   45 %  exact    test" in out
    assert "memory_peak  1 GiB      4 GiB   25 %  exact    test" in out
    assert "CPU        ███  0 to 80 %" in out
    assert "memory     ▃▆█  0 to 100 MiB" in out
    assert "  7  26 s   512 MiB   30 s  python x" in out
    assert "- It used 25 % of the memory it requested: 1 GiB of 4 GiB." in out
    assert f"journal    {journal_of(jobmeter.folder, 'aaa1')}" in out


def test_of_a_container_it_is_shown_of_which_image_and_engine(jobmeter: Commands) -> None:
    run = record("aaa1")
    run["provenance"]["container"] = {"image": "alpine:3", "engine": "podman", "engine_version": "4.3.1", "id": "f00"}
    assert "container  alpine:3, podman 4.3.1" in jobmeter.keep(run)("show").out.splitlines()


@pytest.mark.parametrize(
    ("outcome", "kills", "words"),
    [
        ({"status": "oom", "exit_code": None, "signal": 9}, 1, "killed by SIGKILL; the kernel's OOM killer did it"),
        ({"status": "oom", "exit_code": 1, "signal": None}, 3, "exit code 1; the kernel's OOM killer did it (3 kills)"),
        ({"status": "oom", "exit_code": None, "signal": 9}, 0, "killed by SIGKILL; jobmeter ended it at its memory"),
        ({"status": "failed", "exit_code": 3, "signal": None}, 0, "failed with exit code 3 after 5 s"),
        ({"status": "killed", "exit_code": None, "signal": 11}, 0, "killed by SIGSEGV after 5 s"),
    ],
)
def test_the_outcome_is_shown_in_words(jobmeter: Commands, outcome: dict[str, object], kills: int, words: str) -> None:
    run = {**record("aaa1", wall_seconds=5.0), "outcome": outcome}
    run["measurements"] = {"cgroup_oom_kills": {"unit": "count", "kind": "counter", "total": kills}}
    assert f"outcome    {words}" in jobmeter.keep(run)("show").out


def test_json_is_the_record(jobmeter: Commands) -> None:
    shown = json.loads(jobmeter.keep()("show", "--json", "aaa1").out)
    assert [] == shown.pop("findings")
    assert five()[0] == shown


def test_findings_are_in_the_json_as_in_the_text(jobmeter: Commands) -> None:
    run = record("aaa1", wall_seconds=9.0, memory_peak_bytes=5 << 30, requirement={"memory_bytes": 4 << 30})
    (finding,) = json.loads(jobmeter.keep(run)("show", "--json").out)["findings"]
    assert ("over_memory", "problem") == (finding["kind"], finding["severity"])
    assert f"! {finding['text']}" in jobmeter("show").out.splitlines()


def test_a_line_of_the_journal_that_cannot_be_read_is_reported(jobmeter: Commands) -> None:
    path = journal_of(jobmeter.keep().folder, "aaa1")
    path.write_bytes(path.read_bytes().replace(b"[2.0", b"[noise"))
    done = jobmeter("show", "aaa1")
    assert (0, f"jobmeter: {path}: line 4 cannot be read and was skipped\n") == (done.code, done.err)


@pytest.mark.parametrize(
    ("text", "message"), [("zzz", "there is no run 'zzz'"), ("aa", "'aa' is the beginning of several ids")]
)
def test_an_id_of_no_run_or_of_several_is_reported(jobmeter: Commands, text: str, message: str) -> None:
    done = jobmeter.keep()("show", text)
    assert (2, "", True) == (done.code, done.out, message in done.err)


def test_without_runs_there_is_nothing_to_show(jobmeter: Commands) -> None:
    done = jobmeter("show")
    assert (2, "jobmeter: there are no runs yet. `jobmeter run -- COMMAND` stores one.\n") == (done.code, done.err)
