"""The page in a real browser: what a person sees of it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from jobmeter.report.plot.page import page
from tests.parts import missing, need_module
from tests.report.plot.test_figures import job

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

CHROMIUM = "/usr/bin/chromium"
WIDTH = 1280


class Opened:
    """A page, and what went on in it."""

    def __init__(self, tab: Page) -> None:
        self.tab = tab
        self.requests: list[str] = []
        self.errors: list[str] = []
        tab.on("request", lambda request: self.requests.append(request.url))
        tab.on("pageerror", lambda error: self.errors.append(str(error)))
        tab.on("console", lambda message: self.errors.append(message.text) if message.type == "error" else None)

    def figure(self, name: str) -> Locator:
        """A figure, once it is drawn."""
        place = self.tab.locator(f"[data-figure='{name}']")
        place.scroll_into_view_if_needed()
        place.locator(".main-svg").first.wait_for()
        return place

    def hover(self, figure: Locator, part: float = 0.5) -> str:
        box = figure.locator(".nsewdrag").first.bounding_box()
        assert box is not None
        self.tab.mouse.move(box["x"] + box["width"] * part, box["y"] + box["height"] / 2)
        figure.locator(".hoverlayer text").first.wait_for()
        return figure.locator(".hoverlayer").text_content() or ""


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    if not os.path.exists(CHROMIUM):
        missing("needs Chromium: scripts/install-test-parts")
    playwright = need_module("playwright.sync_api")
    with playwright.sync_playwright() as driver:
        arguments = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
        launched = driver.chromium.launch(executable_path=CHROMIUM, args=arguments)
        yield launched
        launched.close()


@pytest.fixture(scope="module")
def opened(browser: Any, tmp_path_factory: pytest.TempPathFactory) -> Opened:
    mib = 2**20
    requested = {"requirement_cpus": 2.0, "requirement_memory_bytes": 2048 * mib}
    used = {"cpu_peak_percent": 95.0, "cpu_mean_percent": 80.0}
    held = {"memory_peak_bytes": 1500 * mib, "memory_mean_bytes": 750 * mib}
    jobs = [
        job("aaaa1111", "train", 1500.0, wall_seconds=300.0, **requested, **used, **held),
        job("bbbb2222", "a-job-with-a-name-that-is-far-too-long-for-any-figure", 40.0, **used),
    ]
    path = Path(tmp_path_factory.mktemp("plots"), "page.html")
    path.write_text(page(jobs), encoding="utf-8")
    shown = Opened(browser.new_page(viewport={"width": WIDTH, "height": 900}))
    shown.tab.goto(path.as_uri())
    return shown


@pytest.mark.parametrize("name", ["summary", "CPU", "Memory", "aaaa1111", "bbbb2222"])
def test_curves_and_bars_are_there(opened: Opened, name: str) -> None:
    figure = opened.figure(name)
    paths = figure.locator(".scatterlayer path.js-line, .barlayer .point path").all()
    drawn = [path.get_attribute("d") or "" for path in paths]
    assert drawn
    assert all(len(re.findall(r"[LHV]", shape)) >= 1 for shape in drawn)


def test_a_run_has_three_panels_on_one_time_line(opened: Opened) -> None:
    figure = opened.figure("aaaa1111")
    assert 3 == figure.locator(".cartesianlayer .subplot").count()
    assert 1 == figure.locator(".infolayer .xtitle").count()


def test_hover_tells_all_values_of_a_moment_with_units(opened: Opened) -> None:
    told = opened.hover(opened.figure("aaaa1111"))
    assert re.search(r"CPU, peak : 95 %", told)
    assert re.search(r"Memory : \d+ MiB", told)
    assert re.search(r"Processes : 1", told)
    assert re.search(r"[\d.]+ min", told)


def test_hover_in_an_overview_tells_the_run(opened: Opened) -> None:
    figure = opened.figure("Memory")
    line = figure.locator(".scatterlayer path.js-line").first.bounding_box()
    assert line is not None
    opened.tab.mouse.move(line["x"] + line["width"] - 3, line["y"] + 2)
    figure.locator(".hoverlayer text").first.wait_for()
    told = figure.locator(".hoverlayer").text_content() or ""
    assert "train aaaa1.46 GiB at 5 min" == told


def test_the_legend_hides_a_trace_and_brings_it_back(opened: Opened) -> None:
    figure = opened.figure("CPU")
    entry = figure.locator(".legendtoggle").first
    for left in (1, 2):
        entry.click()
        count = f"""document.querySelectorAll("[data-figure='CPU'] .scatterlayer path.js-line").length === {left}"""
        opened.tab.wait_for_function(count)
        assert left == figure.locator(".scatterlayer path.js-line").count()
        opened.tab.wait_for_timeout(600)  # two clicks at once would be a double click


def inside(text: Locator, figure: Locator) -> bool:
    box, frame = text.bounding_box(), figure.bounding_box()
    assert frame is not None
    if box is None or not box["width"]:
        return True  # not shown
    across = frame["x"] - 1 <= box["x"] and box["x"] + box["width"] <= frame["x"] + frame["width"] + 1
    down = frame["y"] - 1 <= box["y"] and box["y"] + box["height"] <= frame["y"] + frame["height"] + 1
    return across and down


@pytest.mark.parametrize("width", [WIDTH, 700])
def test_nothing_is_clipped(opened: Opened, width: int) -> None:
    opened.tab.set_viewport_size({"width": width, "height": 900})
    opened.tab.wait_for_timeout(500)
    for name in ("summary", "CPU", "Memory", "aaaa1111", "bbbb2222"):
        figure = opened.figure(name)
        for text in figure.locator(".infolayer text, .cartesianlayer text, .barlayer text").all():
            assert inside(text, figure), f"{name}: {text.text_content()}"
    assert opened.tab.evaluate("document.documentElement.scrollWidth") <= width
    opened.tab.set_viewport_size({"width": WIDTH, "height": 900})


def test_no_number_is_unreadable(opened: Opened) -> None:
    for name in ("summary", "Memory", "aaaa1111"):
        for tick in (
            opened.figure(name).locator(".xtick text, .ytick text, .x2tick text, .y2tick text").all_text_contents()
        ):
            assert not re.search(r"\de[+-]?\d|\d{7}", tick)


def test_no_button_sends_anything_away(opened: Opened) -> None:
    buttons = opened.figure("aaaa1111").locator(".modebar-btn")
    titles = {button.get_attribute("data-title") for button in buttons.all()}
    assert {"Download plot", "Zoom", "Pan", "Zoom in", "Zoom out", "Autoscale", "Reset axes"} >= titles


def test_no_request_left_the_page_and_no_error_came_up(opened: Opened) -> None:
    for name in ("summary", "CPU", "Memory", "aaaa1111", "bbbb2222"):
        opened.figure(name)
    assert [] == [url for url in opened.requests if not url.startswith(("file://", "data:", "blob:"))]
    assert [] == opened.errors
