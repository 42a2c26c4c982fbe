from __future__ import annotations

import re
import xml.etree.ElementTree as ET

import pytest

from jobmeter.report.graph.drawing import LOOKS, Box, svg
from jobmeter.report.graph.page import graph_page

SVG = "{http://www.w3.org/2000/svg}"


def box(name: str, level: int = 0, *after: str, jobs: int = 1, **statuses: int) -> Box:
    return Box(name, jobs, level, after, "4 cpus, 8 GiB", f"{name}\n./run", statuses)


def texts(*boxes: Box) -> list[str]:
    return [element.text or "" for element in ET.fromstring(svg(boxes)).iter(f"{SVG}text")]


def looks(*boxes: Box) -> list[str]:
    rects = ET.fromstring(svg(boxes)).iter(f"{SVG}rect")
    return [rect.attrib["class"].removeprefix("box ") for rect in rects if rect.attrib["class"].startswith("box")]


def test_every_box_and_every_edge_is_drawn() -> None:
    root = ET.fromstring(svg([box("prep"), box("train", 1, "prep", jobs=3), box("report", 2, "train", "prep")]))
    lines = [path.findtext(f"{SVG}title") for path in root.iter(f"{SVG}path") if path.attrib["class"] == "line"]
    assert {"train waits for prep", "report waits for train", "report waits for prep"} == set(lines)
    assert ["prep\n./run", "train\n./run", "report\n./run"] == [
        node.findtext(f"{SVG}title") for node in root.iter(f"{SVG}g")
    ]


def test_a_box_shows_its_name_its_request_and_its_outcome() -> None:
    assert ["prep", "4 cpus, 8 GiB", "completed"] == texts(box("prep", completed=1))


def test_a_sweep_is_one_box_with_its_number() -> None:
    words = texts(box("train_{i:03d}", jobs=100, completed=97, failed=3))
    assert ["train_{i:03d} × 100", "4 cpus, 8 GiB", "97 completed, 3 failed"] == words


def test_a_long_name_is_cut_and_its_number_is_not() -> None:
    name, *_ = texts(box("x" * 80, jobs=1234))
    assert re.fullmatch(r"x+… × 1,234", name)


def test_a_box_has_the_colour_of_the_worst_of_its_jobs() -> None:
    assert ["good", "bad", "plain"] == looks(box("a", completed=1), box("b", completed=9, oom=1), box("c"))


def test_nothing_in_a_name_is_taken_for_markup() -> None:
    words = texts(box("<script>alert(1)</script>"), box('"&', 1, "<script>alert(1)</script>"))
    assert "<script>alert(1)</scrip" in words[0]
    assert '"&' in words


def test_what_waits_for_itself_or_for_what_is_not_there_is_drawn() -> None:
    assert "train × 10" in texts(box("train", 0, "train", "nowhere", jobs=10))


@pytest.mark.parametrize("count", [0, 1, 200])
def test_the_boxes_are_inside_the_drawing(count: int) -> None:
    boxes = [box(f"job{number}", number % 5, *([f"job{number - 1}"] if number % 5 else [])) for number in range(count)]
    root = ET.fromstring(svg(boxes))
    width, height = float(root.attrib["width"]), float(root.attrib["height"])
    for each in root.iter(f"{SVG}svg"):
        if "x" in each.attrib:
            assert 0 <= float(each.attrib["x"]) <= width - float(each.attrib["width"])
            assert 0 <= float(each.attrib["y"]) <= height - float(each.attrib["height"])


def test_the_page_needs_nothing_from_anywhere_and_no_script() -> None:
    page = graph_page("<Demo>", "3 jobs", [box("prep", completed=1)], ["./run <in"])
    assert "<script" not in page
    assert [] == re.findall(r"(?:src|href)=|@import|https?://(?!www\.w3\.org/2000/svg)", page)
    assert "&lt;Demo&gt;" in page
    assert "./run &lt;in" in page


def test_the_legend_counts_jobs_and_is_there_only_after_a_run() -> None:
    assert "</i>4 completed</span>" in graph_page("d", "", [box("a", jobs=4, completed=4)], [""])
    assert 'class="legend"' not in graph_page("d", "", [box("a")], [""])


def test_every_look_has_its_colours() -> None:
    page = graph_page("d", "", [box("a")], [""])
    assert all(f".dag .box.{look}" in page and f"i.{look}" in page for look in LOOKS.values())
