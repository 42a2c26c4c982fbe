from __future__ import annotations

import itertools
import random

import pytest

from jobmeter.report.graph.layout import GridCell, Layout, lay_out


def apart(layout: Layout) -> bool:
    """Whether no two boxes of a column overlap."""
    pairs = itertools.combinations(layout.places.values(), 2)
    return all(abs(one.row - other.row) > 1 - 1e-6 for one, other in pairs if one.column == other.column)


def crossings(layout: Layout) -> int:
    lines = [(layout.places[route.before], layout.places[route.after]) for route in layout.routes]
    return sum(
        (a.row - c.row) * (b.row - d.row) < -1e-9
        for (a, b), (c, d) in itertools.combinations(lines, 2)
        if a.column == c.column and b.column == d.column
    )


def test_a_chain_is_a_straight_line() -> None:
    layout = lay_out({"a": 0, "b": 1, "c": 2}, [("a", "b"), ("b", "c")])
    assert {"a": GridCell(0, 0.0), "b": GridCell(1, 0.0), "c": GridCell(2, 0.0)} == layout.places
    assert (3, 1.0) == (layout.columns, layout.rows)


def test_what_waits_for_two_stands_between_them() -> None:
    places = lay_out({"a": 0, "b": 0, "c": 1}, [("a", "c"), ("b", "c")]).places
    assert 0.5 == pytest.approx(places["c"].row)


def test_lines_that_need_not_cross_do_not() -> None:
    edges = [(f"a{number}", f"b{9 - number}") for number in range(10)]
    levels = {name: column for column, pair in enumerate(zip(*edges)) for name in sorted(pair)}
    layout = lay_out(levels, edges)
    assert 0 == crossings(layout)
    assert apart(layout)


def test_a_line_over_several_levels_keeps_clear_of_the_boxes_between() -> None:
    layout = lay_out({"a": 0, "b": 1, "c": 2}, [("a", "b"), ("b", "c"), ("a", "c")])
    (route,) = (route for route in layout.routes if (route.before, route.after) == ("a", "c"))
    (passing,) = route.through
    assert 1 == passing.column
    assert abs(passing.row - layout.places["b"].row) > 0.6


def test_levels_that_nothing_is_on_take_no_room() -> None:
    layout = lay_out({"a": 0, "b": 9}, [("a", "b")])
    assert 2 == layout.columns
    assert () == layout.routes[0].through


def test_an_edge_that_leads_back_is_drawn_and_changes_no_place() -> None:
    layout = lay_out({"a": 0, "b": 1}, [("a", "b"), ("b", "a")])
    assert 2 == len(layout.routes)
    assert apart(layout)


def test_no_boxes_make_no_drawing() -> None:
    assert Layout({}, [], 0, 0.0) == lay_out({}, [])


def test_boxes_of_any_graph_keep_apart() -> None:
    dice = random.Random(7)
    levels = {f"n{number}": dice.randrange(8) for number in range(150)}
    edges = [(a, b) for a, b in itertools.product(levels, levels) if levels[a] < levels[b] and dice.random() < 0.02]
    layout = lay_out(levels, edges)
    assert apart(layout)
    assert 0.0 == pytest.approx(min(place.row for place in layout.places.values()), abs=0.5)
