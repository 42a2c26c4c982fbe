from __future__ import annotations

import re

import pytest

from jobmeter.analyse.study import Trial, rank
from jobmeter.report.study.page import _ticks, scatter


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (0, 6, [0, 1, 2, 3, 4, 5, 6]),
        (0.42, 1.02, [0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.1]),
        (0, 0, [0.0, 0.2, 0.4, 0.6, 0.8, 1.0][:2]),
        (-3e-5, 1e-5, [-3e-5, -2e-5, -1e-5, 0, 1e-5]),
    ],
)
def test_ticks_are_round_and_enclose_the_values(low: float, high: float, expected: list[float]) -> None:
    ticks = _ticks(low, high)
    assert expected == pytest.approx(ticks)
    assert ticks[0] <= low <= high <= ticks[-1]


def test_every_trial_is_within_the_picture_whatever_its_value() -> None:
    trials = [Trial(str(n), f"<{n}>", "completed", {}, 1.0, 10.0**n, value=-(10.0**-n)) for n in range(-5, 6)]
    picture = scatter(rank(trials, maximize=True), "<loss>")
    places = re.findall(r'cx="([^"]+)" cy="([^"]+)"', picture)
    assert len(trials) == len(places)
    assert all(0 <= float(x) <= 720 and 0 <= float(y) <= 440 for x, y in places)
    assert "<loss>" not in picture
