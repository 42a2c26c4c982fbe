"""Tables in terminals of any width: no number is ever cut, rows stay distinct, and what is left out is named."""

from __future__ import annotations

from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobmeter.report.shortening import cell_width
from jobmeter.report.table import plain_lines
from jobmeter.report.table_layout import Column, lay_out, short_times
from jobmeter.units import text

RUNS = (
    Column("id", essential=True),
    Column("name", essential=True, shortens=True),
    Column("status"),
    Column("wall", "seconds"),
    Column("memory_peak", "bytes"),
    Column("started", "time"),
)
ROWS = [
    ["aaaa", f"train-lr0.001-seed{seed}", "completed", "1h 12m 6s", "208 MiB", f"2026-01-31 12:00:{seed}"]
    for seed in (11, 12)
]


def lines(width: int | None) -> list[str]:
    return plain_lines(lay_out(RUNS, ROWS, width))


def test_in_a_pipe_everything_is_whole() -> None:
    assert [
        "id    name                  status          wall  memory_peak  started",
        "aaaa  train-lr0.001-seed11  completed  1h 12m 6s      208 MiB  2026-01-31 12:00:11",
        "aaaa  train-lr0.001-seed12  completed  1h 12m 6s      208 MiB  2026-01-31 12:00:12",
    ] == lines(None)


def test_first_names_then_times_then_headings_then_columns_give_way() -> None:
    assert "aaaa  train-lr…-seed11  completed  1h 12m 6s      208 MiB  2026-01-31 12:00:11" == lines(78)[1]
    assert "aaaa  train-lr…1-seed11  completed  1h 12m 6s      208 MiB  01-31 12:00" == lines(71)[1]
    assert ["memory_"] == lines(66)[0].split()
    assert "aaaa  train-lr…-seed11  completed  1h 12m 6s  208 MiB  01-31 12:00" == lines(66)[2]
    assert "aaaa  train-l…-seed11  completed  1h 12m 6s  208 MiB" == lines(52)[2]
    layout = lay_out(RUNS, ROWS, 30)
    assert ["wall", "memory_peak", "started"] == layout.left_out
    assert "aaaa  train-…seed11  completed" == plain_lines(layout)[1]


def test_what_identifies_rows_stays_in_the_narrowest_terminal() -> None:
    layout = lay_out(RUNS, ROWS, 1)
    assert ["id", "name"] == [column.name for column in layout.columns]
    assert 2 == len({tuple(row) for row in layout.rows})


def test_times_of_several_years_are_days() -> None:
    assert ["01-31 12:00", "", "02-01 00:00"] == short_times(["2026-01-31 12:00:00", "", "2026-02-01 00:00:00"])
    assert ["2025-01-31", "2026-01-31"] == short_times(["2025-01-31 12:00:00", "2026-01-31 12:00:00"])


def test_a_table_without_rows_is_its_headings() -> None:
    assert ["id  name  status  wall  memory_peak  started"] == plain_lines(lay_out(RUNS, [], 80))


@pytest.mark.parametrize("width", [None, 20])
def test_wide_letters_are_aligned(width: int | None) -> None:
    columns = (Column("name", essential=True, shortens=True), Column("wall", "seconds"))
    layout = lay_out(columns, [["数据处理流水线数据处理流水线", "1 s"], ["b", "10 s"]], width)
    assert 1 == len({cell_width("".join(cells)) for cells in layout.lines()})


class Table(NamedTuple):
    columns: list[Column]
    rows: list[list[str]]


UNITS = ("text", "bytes", "seconds", "percent", "count")
NAMES = st.text("ab_-.01", min_size=1, max_size=40)


@st.composite
def tables(draw: st.DrawFn) -> Table:
    """Any columns, some of texts and some of numbers, the first of them essential."""
    columns = [Column("name", essential=True, shortens=True)]
    for number in range(draw(st.integers(0, 8))):
        unit = draw(st.sampled_from(UNITS))
        essential, shortens = draw(st.booleans()), unit == "text" and draw(st.booleans())
        columns.append(Column(f"column_{number}_{draw(st.text('xy_', max_size=12))}", unit, essential, shortens))
    amounts = st.floats(0, 1e15)
    rows = [
        [draw(NAMES) if column.unit == "text" else text(draw(amounts), column.unit) for column in columns]
        for _ in range(draw(st.integers(0, 12)))
    ]
    return Table(columns, rows)


@given(tables(), st.integers(1, 200))
def test_whatever_the_table_and_the_width_no_number_is_cut_and_rows_stay_distinct(table: Table, width: int) -> None:
    layout = lay_out(table.columns, table.rows, width)
    shown = [table.columns.index(column) for column in layout.columns]
    assert shown == sorted(shown)
    assert layout.left_out == [c.name for n, c in enumerate(table.columns) if n not in shown]
    assert not any(column.essential for n, column in enumerate(table.columns) if n not in shown)
    assert layout.width <= width or all(column.essential for column in layout.columns)
    for row, printed in zip(table.rows, layout.rows):
        for place, cell in zip(shown, printed):
            assert cell == row[place] or table.columns[place].shortens
    essential = [n for n, column in enumerate(table.columns) if column.essential]
    before = {tuple(row[n] for n in essential) for row in table.rows}
    after = {tuple(row[shown.index(n)] for n in essential) for row in layout.rows}
    assert len(before) == len(after)


@given(tables(), st.integers(20, 200))
def test_every_line_is_as_wide_as_all_columns(table: Table, width: int) -> None:
    layout = lay_out(table.columns, table.rows, width)
    for cells in layout.lines():
        assert [cell_width(cell) for cell in cells] == layout.widths
