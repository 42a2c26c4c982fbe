"""The table of headline figures: each row is complete, and everything that follows from it agrees."""

from __future__ import annotations

import pytest

from jobmeter.analyse.headline import Measured, Summary
from jobmeter.analyse.headline_table import HEADLINE, HeadlineFigure
from jobmeter.model import Requirement
from jobmeter.store.index.tables import job_metadata
from jobmeter.store.query.fields import FIELDS


@pytest.mark.parametrize("figure", HEADLINE, ids=lambda figure: figure.name)
def test_a_row_is_complete_and_has_a_column_and_a_field(figure: HeadlineFigure) -> None:
    assert figure.statistic in ("total", "peak", "mean", "min")
    assert figure.unit in ("bytes", "seconds", "percent", "count", "joules", "watts", "celsius")
    assert figure.sources
    assert figure.requested in ("", *Requirement._fields)
    assert figure.name in job_metadata.columns
    assert (figure.unit, figure.name) == FIELDS[figure.name]


def test_names_and_headings_are_different() -> None:
    for field in ("name", "heading"):
        assert len(HEADLINE) == len({getattr(figure, field) for figure in HEADLINE})


def test_a_row_without_a_function_takes_the_first_source_that_has_its_statistic() -> None:
    row = HeadlineFigure("energy_joules", "joules", "energy", ("rapl_energy", "nvml_energy"), "total")
    summary: Summary = {"rapl_energy": {"peak": 3}, "nvml_energy": {"total": 5.0}}
    figure = row.of(Measured(summary, {"nvml_energy": {"quality": "exact"}}, 1.0))
    assert {"value": 5.0, "from": "nvml_energy", "quality": "exact"} == figure
    assert row.of(Measured({}, {}, 1.0)) is None
