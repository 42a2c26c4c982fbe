"""What `--measurements` chooses."""

from __future__ import annotations

import pytest

from jobmeter.collectors import load_builtin, select
from jobmeter.collectors.container import with_container
from jobmeter.errors import UsageError

ALL = {m.key for collector in load_builtin() for m in collector.measurements}
DEFAULT = {key for choice in select(None) for key in choice.wanted}


def keys(*patterns: str) -> set[str]:
    return {key for choice in select(list(patterns)) for key in choice.wanted}


def named(*patterns: str) -> set[str]:
    return {key for choice in select(list(patterns)) for key in choice.named}


def test_keys_globs_default_and_all_include() -> None:
    assert {"proc_rss", "host_load1", "host_mem_used"} == keys("proc_rss", "host_load1", "host_mem_used")
    assert {key for key in ALL if key.startswith("perf_")} == keys("perf_*")
    assert DEFAULT | {"host_load1"} == keys("default", "host_load1")
    assert ALL == keys("all")
    assert set() == keys("none")


@pytest.mark.parametrize("patterns", [("default", "-proc_processes"), ("-proc_processes", "default")])
def test_exclusions_apply_after_inclusions_wherever_they_stand(patterns: tuple[str, ...]) -> None:
    assert DEFAULT - {"proc_processes"} == keys(*patterns)


def test_exclusions_alone_are_taken_from_the_default() -> None:
    assert DEFAULT - {"proc_processes", "rusage_maxrss"} == keys("-proc_processes", "-rusage_maxrss")
    assert DEFAULT == keys("-host_load1")  # it is a key, and not among them


def test_globs_default_and_all_can_be_excluded() -> None:
    assert {key for key in ALL if not key.startswith("ps_")} == keys("all", "-ps_*")
    assert ALL - DEFAULT == keys("all", "-default")
    assert set() == keys("-all")
    assert {"proc_rss"} == keys("proc_*", "proc_rss", "-proc_?*_*", "-proc_[!r]*")


def test_a_key_that_is_included_and_excluded_is_excluded() -> None:
    assert (set(), set()) == (keys("proc_rss", "-proc_rss"), named("proc_rss", "-proc_*"))


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        ("proc_rss_totl", "there is no 'proc_rss_totl'. Did you mean 'proc_rss_total'?"),
        ("-proc_rss_totl", "there is no '-proc_rss_totl'. Did you mean '-proc_rss_total'?"),
        ("-proc_rss_totl*", "there is no '-proc_rss_totl*'. Did you mean '-proc_rss_total'?"),
        ("none", "`none` cannot be combined"),
    ],
)
def test_a_pattern_that_matches_nothing_is_refused_with_the_nearest_key(pattern: str, words: str) -> None:
    with pytest.raises(UsageError) as refused:
        select(["default", pattern])
    assert words in str(refused.value)


def test_only_what_is_written_out_is_requested_by_name() -> None:
    assert {"perf_cycles"} == named("perf_*", "perf_cycles", "all", "default", "-proc_rss")
    assert set() == named("perf_cycle?")


def test_what_is_measured_by_default_is_so_whatever_stands_beside_it() -> None:
    usual = {key for choice in select(["default", "proc_rss", "perf_cpu_percent"]) for key in choice.usual}
    assert DEFAULT - {"perf_cpu_percent"} == usual


@pytest.mark.parametrize(
    ("patterns", "expected"),
    [
        (None, ["default", "netns_*", "container_*"]),
        (["default", "-proc_rss"], ["default", "-proc_rss", "netns_*", "container_*"]),
        (["-proc_rss"], ["default", "netns_*", "container_*", "-proc_rss"]),
        (["proc_rss"], ["proc_rss"]),
        (["none"], ["none"]),
    ],
)
def test_for_a_container_the_default_includes_what_its_engine_reports(
    patterns: list[str] | None, expected: list[str]
) -> None:
    assert expected == with_container(patterns)
