from __future__ import annotations

import pytest

from jobmeter.analyse.headline import Described, Figure, Measured, Summary
from jobmeter.analyse.headline_memory import memory_peak
from tests.analyse.summaries import DESCRIBED, peaks, totals

MIB = 2**20


def peak_figure(summary: Summary, described: Described) -> Figure | None:
    return memory_peak(Measured(summary, described, 10.0))


MEMORY = [
    ("nothing was measured", {}, None),
    (
        "hardly any cache: the exact peak of the group",
        {"cgroup_mem_peak": 100 * MIB, "cgroup_held": 90 * MIB, "cgroup_file": 2 * MIB},
        (100 * MIB, "cgroup_mem_peak", "exact"),
    ),
    (
        "cache, but what was held explains the peak alone: the exact peak",
        {"cgroup_mem_peak": 100 * MIB, "cgroup_held": 99 * MIB, "cgroup_file": 50 * MIB},
        (100 * MIB, "cgroup_mem_peak", "exact"),
    ),
    (
        "much cache, and samples explain the peak: what was held, sampled",
        {"cgroup_mem_peak": 100 * MIB, "cgroup_held": 40 * MIB, "cgroup_file": 60 * MIB},
        (40 * MIB, "cgroup_held", "sampled"),
    ),
    (
        "much cache, and a peak that no sample explains: at least what was held",
        {"cgroup_mem_peak": 100 * MIB, "cgroup_held": 40 * MIB, "cgroup_file": 30 * MIB},
        (40 * MIB, "cgroup_held", "at least"),
    ),
    (
        "the kernel keeps no peak: what was held",
        {"cgroup_held": 40 * MIB, "cgroup_file": 30 * MIB, "proc_pss_total": 50 * MIB},
        (40 * MIB, "cgroup_held", "sampled"),
    ),
    (
        "no group: shared memory counted once",
        {"proc_pss_total": 30 * MIB, "proc_rss_total": 80 * MIB, "proc_processes": 3},
        (30 * MIB, "proc_pss_total", "sampled"),
    ),
    (
        "no PSS: the sum of resident sizes",
        {"proc_rss_total": 80 * MIB, "ps_rss_total": 70 * MIB},
        (80 * MIB, "proc_rss_total", "sampled"),
    ),
    (
        "never below the largest process: at least that, if there were others",
        {"proc_pss_total": 30 * MIB, "proc_hwm_max": 50 * MIB, "proc_processes": 2},
        (50 * MIB, "proc_hwm_max", "at least"),
    ),
    (
        "never below the largest process, whichever way it is known",
        {"proc_pss_total": 30 * MIB, "proc_hwm_max": 50 * MIB, "rusage_maxrss": 60 * MIB, "proc_processes": 2},
        (60 * MIB, "rusage_maxrss", "at least"),
    ),
    (
        "nor is a group's figure",
        {"cgroup_mem_peak": 100 * MIB, "cgroup_held": 40 * MIB, "cgroup_file": 60 * MIB, "rusage_maxrss": 70 * MIB},
        (70 * MIB, "rusage_maxrss", "at least"),
    ),
    (
        "one process alone in its group: its own mark is exact",
        {
            "cgroup_mem_peak": 49 * MIB,
            "cgroup_held": 40 * MIB,
            "cgroup_file": 0,
            "rusage_maxrss": 50 * MIB,
            "proc_processes": 1,
        },
        (50 * MIB, "rusage_maxrss", "exact"),
    ),
    (
        "one process alone without a group: what it holds beside its own was seen at moments",
        {"proc_pss_total": 30 * MIB, "rusage_maxrss": 50 * MIB, "proc_processes": 1},
        (50 * MIB, "rusage_maxrss", "sampled"),
    ),
    (
        "memory in no resident size: counted with the rest, as it was seen",
        {"proc_pss_total": 30 * MIB, "rusage_maxrss": 50 * MIB, "proc_held_total": 230 * MIB, "proc_processes": 1},
        (230 * MIB, "proc_held_total", "sampled"),
    ),
    (
        "huge pages, which the group is not charged for: with the rest, as they were seen",
        {
            "cgroup_mem_peak": 100 * MIB,
            "cgroup_held": 99 * MIB,
            "cgroup_file": 0,
            "proc_hugetlb_total": 64 * MIB,
            "proc_held_total": 160 * MIB,
        },
        (160 * MIB, "proc_held_total", "sampled"),
    ),
    (
        "huge pages on the machine, none seen with the job: not exact, for there was time between samples",
        {"cgroup_mem_peak": 100 * MIB, "cgroup_held": 99 * MIB, "cgroup_file": 0, "proc_hugetlb_total": 0},
        (100 * MIB, "cgroup_mem_peak", "sampled"),
    ),
    (
        "huge pages on the machine, and the kernel knows that the job had none: exact",
        {
            "cgroup_mem_peak": 100 * MIB,
            "cgroup_held": 99 * MIB,
            "cgroup_file": 0,
            "proc_hugetlb_total": 0,
            "cgroup_hugetlb_peak": 0,
        },
        (100 * MIB, "cgroup_mem_peak", "exact"),
    ),
    (
        "more huge pages than any sample saw: at least",
        {
            "cgroup_mem_peak": 100 * MIB,
            "cgroup_held": 99 * MIB,
            "cgroup_file": 0,
            "proc_hugetlb_total": 0,
            "proc_held_total": 99 * MIB,
            "cgroup_hugetlb_peak": 64 * MIB,
        },
        (100 * MIB, "cgroup_mem_peak", "at least"),
    ),
    (
        "many small processes without a group: at least, the kernel's memory for them is not in it",
        {"proc_pss_total": 60 * MIB, "proc_processes": 500},
        (60 * MIB, "proc_pss_total", "at least"),
    ),
    (
        "how many processes there were is not known: at least",
        {"rusage_maxrss": 50 * MIB},
        (50 * MIB, "rusage_maxrss", "at least"),
    ),
]


@pytest.mark.parametrize(("values", "expected"), [case[1:] for case in MEMORY], ids=[case[0] for case in MEMORY])
def test_the_peak_of_memory_is_what_could_not_be_reclaimed(
    values: dict[str, int], expected: tuple[int, str, str] | None
) -> None:
    figure = peak_figure(peaks(**values), DESCRIBED)
    assert expected == (None if figure is None else (figure["value"], figure["from"], figure["quality"]))


def test_a_source_that_missed_something_makes_the_peak_at_least_that() -> None:
    group = {"cgroup_mem_peak": 100 * MIB, "cgroup_held": 99 * MIB, "cgroup_file": 0, "rusage_maxrss": 90 * MIB}
    left = {**DESCRIBED, "cgroup_mem_peak": {"quality": "at least"}}
    unexplained = {**DESCRIBED, "proc_rss_total": {"quality": "at least"}}
    alone = {"rusage_maxrss": 50 * MIB, "proc_processes": 1}
    figures = [peak_figure(peaks(**group), left), peak_figure(peaks(**alone), unexplained)]
    assert ["at least", "at least"] == [figure["quality"] for figure in figures if figure]


def test_cpu_time_outside_the_group_says_that_memory_was_there_too() -> None:
    group = peaks(cgroup_mem_peak=100 * MIB, cgroup_held=99 * MIB, cgroup_file=0)
    inside = peak_figure(group | totals(cgroup_cpu_seconds=2.0, rusage_cpu_seconds=2.01), DESCRIBED)
    outside = peak_figure(group | totals(cgroup_cpu_seconds=1.0, rusage_cpu_seconds=2.0), DESCRIBED)
    assert inside is not None
    assert outside is not None
    assert ("exact", "at least") == (inside["quality"], outside["quality"])


def test_a_process_that_was_alone_as_far_as_was_seen_is_no_exact_peak() -> None:
    """The job's shepherd was killed: others may have gone unseen."""
    unsure = {**DESCRIBED, "proc_processes": {"quality": "at least"}}
    figure = peak_figure(peaks(rusage_maxrss=50 * MIB, proc_processes=1), unsure)
    assert figure is not None
    assert "at least" == figure["quality"]
