from __future__ import annotations

from pathlib import Path

import pytest

from tests.doc_examples import Example, examples, mask, parse_block, shows


def test_output_belongs_to_the_command_above_it() -> None:
    block = "$ jobmeter ls\nid  name\nab  fit\n$ true\n"
    assert parse_block(block) == [Example("jobmeter ls", ["id  name", "ab  fit"]), Example("true", [])]


def test_the_exit_code_is_0_unless_the_example_shows_another() -> None:
    assert [example.exit_code for example in parse_block("$ false\n$ echo $?\n1\n$ true\n")] == [1, 0]
    assert [example.exit_code for example in parse_block("$ true\n$ false\n", exit_code=1)] == [0, 1]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("fit  completed  2.45 s   99.2 MiB", "fit completed   12 ms  1.2 GiB"),
        ("  record     wkguk6bt7x3q  ~/.local/share/jobmeter/journal/wkguk6bt7x3q.jsonl",
         "  record     7rcz7pk7xmwy  /home/ada/.local/share/jobmeter/journal/7rcz7pk7xmwy.jsonl"),
        ("started    2026-11-16 16:30:20, by ada on vm", "started    2027-01-01 00:00:00, by root on node7"),
        ("memory     ▅▆█▇  0 to 93 MiB", "memory     █  0 to 1.5 GiB"),
        ("CPU time  2 s  exact  cgroup_cpu_seconds", "CPU time  2 s  at least  proc_cpu_seconds"),
        ("  memory  263 MiB at most, 26 % of the 1 GiB requested [exact, cgroup], 128 MiB on average [sampled, cgroup]",
         "  memory  at least 9 MiB at the peak, 1 % of the 1 GiB requested [at least, rusage]"),
        ("fit  Memory  100.00 MB  ≥ 163.11 MB  +63.1%", "fit  Memory  100.00 MB  158.00 MB  +58.0%"),
        ("Runtime  1m 0s  0.25s", "Runtime  2h 45m 0s  3s"),
        ("{memory: 32g, runtime: PT2H}", "{memory: 224m, runtime: PT1M14S}"),
    ],
)  # fmt: skip
def test_what_differs_between_machines_is_masked(one: str, other: str) -> None:
    assert mask(one) == mask(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("fit  completed  2.45 s", "fit  failed  2.45 s"),
        ("memory mean  2 MiB", "memory min  2 MiB"),
        ("  CPU  2 s", "  memory  2 s"),
        ("5 new, 0 known", "5 new"),
        ("#SBATCH --mem=416M", "#SBATCH --memory=416M"),
    ],
)
def test_words_and_layout_count(one: str, other: str) -> None:
    assert mask(one) != mask(other)


def test_an_ellipsis_stands_for_any_lines() -> None:
    printed = ["a", "b", "c", "d"]
    assert shows(["a", "…", "d"], printed)
    assert shows(["a", "…", "c", "d"], printed)
    assert shows(["…", "b", "…"], printed)
    assert shows(["a", "b", "c", "d", "…"], printed)
    assert not shows(["a", "…", "c"], printed)
    assert not shows(["a", "d"], printed)
    assert not shows(["…", "c", "…", "b", "…"], printed)
    assert not shows(["a", "b", "…", "b", "c", "d"], printed)


def test_a_line_that_is_not_printed_any_more_is_noticed() -> None:
    assert not shows(["a", "…", "memory min  2 MiB", "…", "d"], ["a", "memory mean  2 MiB", "d"])


def test_waste_that_only_a_slow_machine_reports_does_not_count() -> None:
    printed = [
        "All stayed below",
        "",
        "Requested more than needed:",
        "  a: requested 2 CPUs: 1 less would free 1 core-h a run",
    ]
    assert shows(["All stayed below"], printed)
    assert not shows(["All stayed below"], ["All stayed below", "", "1 job failed"])
    assert shows(["id  cpu", "ab  1 s  2 s"], ["id  cpu", "ab  1 s   2 s"])


def test_the_width_of_a_terminal_is_that_of_its_block(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("```console\n$ a\n```\n\n<!-- columns: 80 -->\n```console\n$ b\n$ c\n```\n")
    assert [("a", 0), ("b", 80), ("c", 80)] == [(example.command, example.columns) for example in examples(page)]
