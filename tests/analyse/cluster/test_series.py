from __future__ import annotations

import pytest

from jobmeter.analyse.cluster.model import ClusterSample, History, Node, cluster_values
from jobmeter.analyse.cluster.series import Point, RunningStat, Spell, lasting, spells


def points(text: str, span: float = 1.0) -> list[Point]:
    """`x` is a second in which it held, `.` one in which it did not."""
    return [Point((at + 1) * span, span, letter == "x") for at, letter in enumerate(text)]


def test_a_mean_is_weighted_by_the_time_that_a_value_stands_for() -> None:
    stat = RunningStat()
    stat.add(10.0, 1.0)
    stat.add(0.0, 9.0)
    assert (1.0, 10.0, 0.0, 0.0, 10.0) == (stat.mean, stat.peak, stat.minimum, stat.last, stat.seconds)


def test_of_values_that_stand_for_no_time_the_plain_mean_is_taken() -> None:
    stat = RunningStat()
    stat.add(4.0, 0.0)
    assert 4.0 == stat.mean


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("....", []),
        ("xx..xx", [Spell(0, 2, 2), Spell(4, 6, 2)]),
        ("xx.xxx", [Spell(0, 6, 5)]),
        ("x", [Spell(0, 1, 1)]),
    ],
)
def test_a_short_break_does_not_end_a_spell(text: str, expected: list[Spell]) -> None:
    assert expected == spells(points(text), bridge=1.0)


def test_only_the_time_beyond_the_line_counts_and_it_must_be_long_enough() -> None:
    assert [] == lasting(points("xxxxxxxxx.........xxxxxxxxx"), 10.0)
    assert [Spell(0, 11, 10)] == lasting(points("xxxxx.xxxxx"), 10.0)


def test_a_sample_that_stands_for_no_time_makes_no_spell() -> None:
    assert [] == spells([Point(0.0, 0.0, True)], 1.0)


def test_what_nodes_of_one_machine_share_counts_once() -> None:
    nodes = {name: Node(name, name, "one", "processes", 0.0) for name in "ab"} | {"c": Node("c", "c", "two", "m", 0.0)}
    each = {"load1": 3.0, "used_cpus": 1.0, "cpu_pressure_percent": 7.0}
    sample = ClusterSample(0.0, 0.0, {"a": each, "b": each, "c": each | {"cpu_pressure_percent": 9.0}})
    assert {
        "load1": 6.0, "used_cpus": 3.0, "cpu_pressure_percent": 9.0, "nodes": 3.0, "tasks_pending": 0.0,
    } == cluster_values(sample, nodes)  # fmt: skip


def test_a_monitor_of_weeks_has_bounded_memory_and_exact_figures() -> None:
    history = History()
    for second in range(9000):
        values = {} if second == 0 else {"used_cpus": 8.0 if second == 5000 else 1.0}
        history.add(ClusterSample(float(second), float(second > 0), {"n": values}))
    stat = history.node_stats["n"]["used_cpus"]
    assert (9000, 8.0, 8999.0) == (history.sample_count, stat.peak, stat.seconds)
    assert 1.0 + 7 / 8999 == pytest.approx(stat.mean)
    assert len(history.samples) <= 4000
    assert 8999.0 == pytest.approx(sum(sample.span for sample in history.samples))
    drawn = sum(sample.nodes["n"]["used_cpus"] * sample.span for sample in history.samples if sample.nodes["n"])
    assert 9006.0 == pytest.approx(drawn, abs=1.0)
