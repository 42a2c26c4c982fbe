"""The pages in a real browser: what a person sees of them, light and dark, on a screen and on a telephone."""

from __future__ import annotations

import os
import random
import re
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from jobmeter.report.plot.page import page
from jobmeter.report.plot.series import JobCurves
from jobmeter.units import scale, text
from jobmeter.workflow.report import write_report
from tests.parts import missing, need_module
from tests.report.plot.drawn import job
from tests.report.workflow.stored import demo

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

CHROMIUM = "/usr/bin/chromium"
MIB = 2**20
WIDTHS = (1400, 420)
SCHEMES = ("light", "dark")
PAGES = ("run", "comparison", "workflow")
AMOUNT = r"[\d.,]+ ?(%|[KMG]iB|B|s|min|ms)"

UNSEEN = """width => {
  const scrolls = element => element.closest('.wide, .timeline, .drawing, pre');
  const shown = element => element.getClientRects().length;
  const cut = [...document.querySelectorAll('main *')].filter(element => shown(element) && !scrolls(element)
    && !element.closest('.js-plotly-plot') && (element.getBoundingClientRect().right > width + 1
    || (element.scrollWidth > element.clientWidth + 1 && getComputedStyle(element).overflowX === 'hidden'
        && !element.title)));
  return cut.map(element => element.outerHTML.slice(0, 120));
}"""
"""What is cut off; a name that is shortened with an ellipsis has all of it in its title."""

CUT_IN_FIGURE = """figure => {
  const frame = figure.getBoundingClientRect();
  const texts = figure.querySelectorAll('.infolayer text, .cartesianlayer text, .infolayer .legend text');
  return [...texts].filter(each => {
    const box = each.getBoundingClientRect();
    return box.width && (box.left < frame.left - 1 || box.right > frame.right + 1 || box.top < frame.top - 1
      || box.bottom > frame.bottom + 1);
  }).map(each => each.textContent);
}"""

OVERLAPS = """figure => {
  const legend = figure.querySelector(".infolayer .legend").getBoundingClientRect();
  const plots = [...figure.querySelectorAll('.cartesianlayer .plot')];
  return plots.some(plot => plot.getBoundingClientRect().top < legend.bottom - 2);
}"""


class Opened(NamedTuple):
    """A page, and what went on in it."""

    tab: Page
    kind: str
    width: int
    requests: list[str]
    errors: list[str]

    def figures(self) -> list[Locator]:
        """All figures, once they are drawn."""
        places = self.tab.locator("[data-run], [data-overview]").all()
        for place in places:
            place.scroll_into_view_if_needed()
            place.locator(".main-svg").first.wait_for()
        return places

    def hover(self, figure: Locator, part: float) -> str:
        """What the pointer shows at this part of the width."""
        figure.scroll_into_view_if_needed()
        box = figure.locator(".nsewdrag").first.bounding_box()
        assert box is not None
        self.tab.mouse.move(box["x"] + box["width"] * part, box["y"] + box["height"] / 2)
        figure.locator(".hoverlayer text").first.wait_for()
        return figure.locator(".hoverlayer").text_content() or ""


def some_jobs() -> list[JobCurves]:
    requested = {"requirement_cpus": 2.0, "requirement_memory_bytes": 2048 * MIB}
    used = {"cpu_peak_percent": 95.0, "cpu_mean_percent": 80.0}
    held = {"memory_peak_bytes": 1500 * MIB, "memory_mean_bytes": 750 * MIB}
    return [
        job("aaaa1111", "train", 1500.0, wall_seconds=300.0, **requested, **used, **held),
        job("bbbb2222", "a-job-with-a-name-that-is-far-too-long-for-any-figure-and-ends-in-7", 40.0, **used),
    ]


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
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("pages")
    paths = {kind: folder / f"{kind}.html" for kind in PAGES}
    paths["run"].write_text(page(some_jobs()[:1]), encoding="utf-8")
    paths["comparison"].write_text(page(some_jobs()), encoding="utf-8")
    directory = demo(str(folder / "store"))
    from jobmeter.store import open_store

    write_report(str(paths["workflow"]), open_store(str(folder / "store"), pytest.fail), directory)
    return paths


def open_page(browser: Any, path: Path, width: int, scheme: str) -> Opened:
    tab = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
    opened = Opened(tab, path.stem, width, [], [])
    tab.on("request", lambda request: opened.requests.append(request.url))
    tab.on("pageerror", lambda error: opened.errors.append(str(error)))
    tab.on("console", lambda message: opened.errors.append(message.text) if message.type == "error" else None)
    tab.goto(path.as_uri())
    return opened


@pytest.fixture(
    scope="module", params=[*product(PAGES, WIDTHS, SCHEMES)], ids=lambda each: f"{each[0]}-{each[1]}-{each[2]}"
)
def opened(request: pytest.FixtureRequest, browser: Any, files: dict[str, Path]) -> Iterator[Opened]:
    kind, width, scheme = request.param
    shown = open_page(browser, files[kind], width, scheme)
    if kind == "workflow":
        shown.tab.locator("button.open").nth(1).click()
    yield shown
    shown.tab.close()


def test_curves_are_there(opened: Opened) -> None:
    figures = opened.figures()
    assert {"run": 1, "comparison": 5, "workflow": 2}[opened.kind] == len(figures)
    for figure in figures:
        drawn = [path.get_attribute("d") or "" for path in figure.locator(".scatterlayer path.js-line").all()]
        assert drawn
        assert all(re.search(r"[LHV]", shape) for shape in drawn)


def test_the_pointer_finds_values_with_units_all_along(opened: Opened) -> None:
    for figure in opened.figures():
        for part in (0.02, 0.3, 0.55, 0.98):
            shown = opened.hover(figure, part)
            assert re.search(AMOUNT, shown), f"{part}: {shown}"
            if figure.get_attribute("data-run") is not None:
                names = figure.locator(".infolayer .legend .legendtext").all_text_contents()
                assert [] == [name for name in names if name not in shown]


def test_legends_are_complete(opened: Opened) -> None:
    for figure in opened.figures():
        names = figure.locator(".infolayer .legend .legendtext").all_text_contents()
        assert figure.locator(".scatterlayer .trace").count() == len(names)
        assert not any("undefined" in name for name in names)
    named = " ".join(opened.tab.locator(".infolayer .legend .legendtext").all_text_contents())
    expected = {"run": "Memory, requested", "comparison": "train aaaa", "workflow": "CPU, requested"}
    assert expected[opened.kind] in named


def test_nothing_is_cut_and_nothing_covers_anything(opened: Opened) -> None:
    for figure in opened.figures():
        assert [] == figure.evaluate(CUT_IN_FIGURE)
        assert not figure.evaluate(OVERLAPS)
    assert [] == opened.tab.evaluate(UNSEEN, opened.width)
    assert opened.tab.evaluate("document.documentElement.scrollWidth") <= opened.width


def test_no_number_is_unreadable(opened: Opened) -> None:
    for figure in opened.figures():
        for tick in figure.locator(".xtick text, .ytick text, .y2tick text, .y3tick text").all_text_contents():
            assert not re.search(r"\de[+-]?\d|\d{7}", tick)


def test_letters_stand_out_from_the_paper_in_either_colours(opened: Opened) -> None:
    colours = opened.tab.evaluate(
        """[...document.querySelectorAll('body, section')].map(each => getComputedStyle(each))
           .map(style => [style.color, style.backgroundColor])"""
    )
    for ink, paper in colours:
        assert abs(brightness(ink) - brightness(paper)) > 120


def brightness(colour: str) -> float:
    return sum(map(float, re.findall(r"[\d.]+", colour)[:3])) / 3


def test_no_button_sends_anything_away(opened: Opened) -> None:
    titles = {each.get_attribute("data-title") for each in opened.figures()[0].locator(".modebar-btn").all()}
    assert {"Download plot", "Zoom", "Pan", "Zoom in", "Zoom out", "Autoscale", "Reset axes"} >= titles


def test_no_request_left_the_page_and_no_error_came_up(opened: Opened) -> None:
    opened.figures()
    assert [] == [url for url in opened.requests if not url.startswith(("file://", "data:", "blob:"))]
    assert [] == opened.errors


def test_plotly_knows_every_property_of_a_figure(opened: Opened) -> None:
    problems = opened.tab.evaluate(
        """() => [...page.runs.map(run => runFigure(run, 900)), ...[...document.querySelectorAll('[data-overview]')]
                .map(each => overviewFigure(each.dataset.overview, 900))]
              .flatMap(figure => (Plotly.validate(figure.data, figure.layout) || []).map(problem => problem.msg))"""
    )
    assert [] == problems


# --- one page at a time ---


@pytest.fixture
def shown(request: pytest.FixtureRequest, browser: Any, files: dict[str, Path]) -> Iterator[Opened]:
    tab = open_page(browser, files[request.param], 1400, "light")
    yield tab
    tab.tab.close()


def only(kind: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("shown", [kind], indirect=True)


@only("run")
def test_amounts_are_written_as_everywhere_else(shown: Opened) -> None:
    numbers = random.Random(5)
    for unit in ("bytes", "seconds", "percent", "count", "watts", "joules"):
        values = [0.0, 1.0, 9.94, 9.96, 59.994, 60.0, 999.0, 1023.6, 1024.0, 86400.0]
        values += [10 ** numbers.uniform(-3, 13) for _ in range(200)]
        values = [round(value) if unit == "bytes" else value for value in values]
        assert [text(value, unit) for value in values] == shown.tab.evaluate(
            "([values, unit]) => values.map(value => amount(value, unit))", [values, unit]
        )
        assert [list(scale(value, unit)) for value in values] == shown.tab.evaluate(
            "([values, unit]) => values.map(value => scale(value, unit))", [values, unit]
        )


@only("run")
def test_a_run_has_three_panels_on_one_time_line(shown: Opened) -> None:
    (figure,) = shown.figures()
    assert 3 == figure.locator(".cartesianlayer .subplot").count()
    assert 1 == figure.locator(".infolayer .xtitle").count()


@only("run")
def test_a_figure_follows_the_window_and_the_colours_of_the_system(shown: Opened) -> None:
    (figure,) = shown.figures()
    ink = "[...document.querySelectorAll('.legendtext')].map(each => getComputedStyle(each).fill)[0]"
    light = shown.tab.evaluate(ink)
    shown.tab.emulate_media(color_scheme="dark")
    shown.tab.wait_for_function(f"{ink} !== '{light}'")
    shown.tab.set_viewport_size({"width": 420, "height": 900})
    shown.tab.wait_for_function("document.querySelector('.main-svg').getBoundingClientRect().width < 420")
    assert [] == figure.evaluate(CUT_IN_FIGURE)


@only("comparison")
def test_the_pointer_names_the_run_in_an_overview(shown: Opened) -> None:
    shown.figures()
    figure = shown.tab.locator("[data-overview=Memory]")
    figure.scroll_into_view_if_needed()
    line = figure.locator(".scatterlayer path.js-line").first.bounding_box()
    assert line is not None
    shown.tab.mouse.move(line["x"] + line["width"] - 3, line["y"] + 2)
    figure.locator(".hoverlayer text").first.wait_for()
    assert "train aaaa1.46 GiB at 5 min" == figure.locator(".hoverlayer").text_content()


@only("comparison")
def test_the_legend_hides_a_trace_and_brings_it_back(shown: Opened) -> None:
    shown.figures()
    figure = shown.tab.locator("[data-overview=CPU]")
    for left in (1, 2):
        figure.locator(".legendtoggle").first.click()
        count = f"document.querySelectorAll('[data-overview=CPU] .scatterlayer path.js-line').length === {left}"
        shown.tab.wait_for_function(count)
        shown.tab.wait_for_timeout(600)  # two clicks at once would be a double click


@only("workflow")
def test_a_job_is_opened_by_its_name_and_by_its_bar_and_closed_again(shown: Opened) -> None:
    shown.tab.locator("#job-3 button.open").click()
    shown.tab.locator("#details-3 .main-svg").first.wait_for()
    assert "./train_3_with_a_name_that_is_rather_long --seed 3" in (
        shown.tab.locator("#details-3 pre").text_content() or ""
    )
    shown.tab.locator("#job-3 button.open").click()
    shown.tab.locator("#details-3").wait_for(state="detached")
    shown.tab.locator(".timeline a[href='#job-4']").first.click()
    shown.tab.locator("#details-4 .main-svg").nth(1).wait_for()
    assert "attempt 2: failed" in (shown.tab.locator("#details-4").text_content() or "")


@only("workflow")
def test_the_table_is_sorted_by_what_is_clicked(shown: Opened) -> None:
    def order() -> list[str]:
        return [each.get_attribute("id") or "" for each in shown.tab.locator("tr.job").all()]

    memory = shown.tab.locator("th button", has_text="memory")
    memory.click()
    assert ["job-4", "job-1", "job-2", "job-3"] == order()[:4]
    memory.click()
    assert ["job-3", "job-2", "job-1", "job-4"] == order()[:4]
    assert {"job-5", "job-6"} == set(order()[4:])


@only("workflow")
def test_the_table_shows_what_is_searched_for_and_what_used_too_much(shown: Opened) -> None:
    visible = shown.tab.locator("tr.job:not(.hidden)")
    shown.tab.locator("#search").fill("TRAIN")
    assert 3 == visible.count()
    assert "3 of 6 jobs" == shown.tab.locator("#shown").text_content()
    shown.tab.locator("#search").fill("")
    shown.tab.locator("#over").check()
    assert ["job-3"] == [each.get_attribute("id") for each in visible.all()]


@only("workflow")
def test_the_critical_path_stands_out_on_the_timeline(shown: Opened) -> None:
    bars = shown.tab.locator(".timeline a.critical").all()
    assert ["#job-1", "#job-2"] == [bar.get_attribute("href") for bar in bars]
    first, second = (bar.bounding_box() for bar in bars)
    assert first is not None
    assert second is not None
    assert 4 == pytest.approx(second["width"] / first["width"], rel=0.02)
    assert first["x"] + first["width"] == pytest.approx(second["x"], abs=1)
