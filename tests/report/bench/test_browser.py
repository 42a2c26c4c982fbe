"""The page of a benchmark in a real browser: what a person sees of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from jobmeter.report.bench.page import bench_page
from tests.report.bench.test_formats import a_result
from tests.report.page.test_browser import browser, open_page

__all__ = ["browser"]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1400, 420])
def test_every_run_is_a_point_with_its_figure_and_nothing_is_cut(
    browser: Any, tmp_path: Path, width: int, scheme: str
) -> None:
    path = tmp_path / "bench.html"
    path.write_text(bench_page(a_result()), encoding="utf-8")
    opened = open_page(browser, path, width, scheme)
    assert [path.as_uri()] == opened.requests
    assert [] == opened.errors
    assert width >= opened.tab.evaluate("document.documentElement.scrollWidth")
    points = opened.tab.locator(".dot")
    assert 3 * 12 == points.count()
    assert "run 1 (r0): 2 s" == points.first.get_attribute("title")
    first, last = points.nth(0).bounding_box(), points.nth(6).bounding_box()
    assert first is not None
    assert last is not None
    assert first["x"] < last["x"], "4 s are to the right of 2 s"
    for place in range(points.count()):
        box = points.nth(place).bounding_box()
        assert box is not None
        assert 0 <= box["x"] <= width - box["width"]
    assert "0.50, efficiency 25 %" in (opened.tab.locator("main").text_content() or "")
    opened.tab.close()
