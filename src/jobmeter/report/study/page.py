"""The page of a study: what each trial cost and how good it was, as one HTML file that needs nothing else."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

from jobmeter.analyse.study import Ranked, Study
from jobmeter.report.page.document import document, tiles
from jobmeter.report.study.text import hours, labels_text, number, ranking_columns, ranking_rows, sentences

_WIDTH, _HEIGHT, _LEFT, _BOTTOM, _EDGE, _TOP = 720, 440, 84, 60, 24, 40
_TICKS = 6
_MOST_ROWS = 100


def study_page(name: str, study: Study, metric: str, *, maximize: bool) -> str:
    """The whole file: totals, the trials by cost and quality with the front of the best, and the leaderboard."""
    goal = "more" if maximize else "less"
    about = f"{study.total.trials:,} trials by {metric}, {goal} is better"
    figures = [
        ("core-hours", hours(study.total.core_hours)),
        ("GB-hours", hours(study.total.gb_hours)),
        ("hours", hours(study.total.wall_hours)),
        ("did not complete", f"{study.total.trials - study.completed.trials:,}"),
    ]
    body = [
        f"<h1>{escape(name)}</h1><p>{escape(about)}</p>",
        tiles(figures),
        "<section><h2>Cost and quality</h2>",
        "<p>A point is a trial. No trial is both better and cheaper than those on the line.</p>",
        scatter(study.ranking, metric),
        "</section>",
        _leaderboard(study.ranking, metric),
        *(f"<p>{escape(sentence)}</p>" for sentence in sentences(study, metric)),
    ]
    return document(name, body, styles=("study.css",))


def scatter(ranking: Sequence[Ranked], metric: str) -> str:
    """The trials as a picture: core-hours to the right, the metric upward."""
    cost_ticks = _ticks(0.0, max((each.trial.core_hours for each in ranking), default=0.0))
    value_ticks = _ticks(*_span([each.trial.value or 0.0 for each in ranking]))
    right, low, high = cost_ticks[-1], value_ticks[0], value_ticks[-1]

    def x(cost: float) -> float:
        return _LEFT + cost / right * (_WIDTH - _LEFT - _EDGE)

    def y(value: float) -> float:
        return _HEIGHT - _BOTTOM - (value - low) / (high - low) * (_HEIGHT - _BOTTOM - _TOP)

    parts = [f'<svg class="scatter" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img">']
    for value in value_ticks:
        parts.append(f'<line class="grid" x1="{_LEFT}" x2="{_WIDTH - _EDGE}" y1="{y(value):.1f}" y2="{y(value):.1f}"/>')
        parts.append(f'<text class="left" x="{_LEFT - 8}" y="{y(value) + 4:.1f}">{value:g}</text>')
    for cost in cost_ticks:
        parts.append(f'<text class="below" x="{x(cost):.1f}" y="{_HEIGHT - _BOTTOM + 22}">{cost:g}</text>')
    parts.append(f'<text class="below" x="{(_LEFT + _WIDTH) / 2}" y="{_HEIGHT - 8}">core-hours</text>')
    parts.append(f'<text x="8" y="18">{escape(metric)}</text>')
    front = sorted((each.trial.core_hours, each.trial.value or 0.0) for each in ranking if each.is_efficient)
    points = " ".join(f"{x(cost):.1f},{y(value):.1f}" for cost, value in front)
    parts.append(f'<polyline class="front" points="{points}"/>')
    for each in ranking:
        trial = each.trial
        tip = f"{trial.name} {labels_text(trial)}: {metric} {number(trial.value)}, {hours(trial.core_hours)} core-hours"
        look = "efficient" if each.is_efficient else "trial"
        parts.append(
            f'<circle class="{look}" cx="{x(trial.core_hours):.1f}" cy="{y(trial.value or 0.0):.1f}" r="5">'
            f"<title>{escape(tip)}</title></circle>"
        )
    return "".join([*parts, "</svg>"])


def _span(values: Sequence[float]) -> tuple[float, float]:
    low, high = min(values, default=0.0), max(values, default=1.0)
    room = 0.0 if high > low else abs(high) * 0.05 or 1.0
    return low - room, high + room


def _ticks(low: float, high: float) -> list[float]:
    """Some round numbers, the first not above `low` and the last not below `high`."""
    rough = (high - low or 1.0) / _TICKS
    power = 10.0 ** math.floor(math.log10(rough))
    step = power * next(factor for factor in (1, 2, 2.5, 5, 10) if factor * power >= rough * (1 - 1e-9))
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [round(place * step, 12) for place in range(first, max(last, first + 1) + 1)]


def _leaderboard(ranking: Sequence[Ranked], metric: str) -> str:
    head = "".join(f"<th>{escape(column.name)}</th>" for column in ranking_columns(metric))
    rows = "".join(
        "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>"
        for row in ranking_rows(ranking[:_MOST_ROWS])
    )
    more = f"<p>The best {_MOST_ROWS} of {len(ranking):,}.</p>" if len(ranking) > _MOST_ROWS else ""
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
    return f'<section><h2>Leaderboard</h2>{more}<div class="wide">{table}</div></section>'
