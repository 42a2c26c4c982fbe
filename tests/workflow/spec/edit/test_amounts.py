from __future__ import annotations

import random

import pytest

from jobmeter.units import parse_bytes, parse_seconds
from jobmeter.workflow.spec.edit.amounts import cpus_text, memory_text, seconds_text

GIB = 2**30


@pytest.mark.parametrize(
    ("size", "like", "expected"),
    [
        (11 * GIB, "8g", "11g"),
        (11 * GIB, "8GiB", "11GiB"),
        (11 * GIB - 5, "8 GB", "11 GB"),
        (768 * 2**20, "512m", "768m"),
        (int(2.33 * GIB), "2g", "2.4g"),
        (GIB // 7, "8GiB", "147MiB"),
        (12345, "100", "12345"),
    ],
)
def test_memory_is_written_in_the_unit_it_had(size: int, like: str, expected: str) -> None:
    assert expected == memory_text(size, like)


@pytest.mark.parametrize(
    ("seconds", "like", "expected"),
    [
        (900, "PT10M", "PT15M"),
        (10800, "2h", "3h"),
        (8000, "PT2H", "PT2H14M"),
        (7200, "90m", "120m"),
        (7200, "90min", "120min"),
        (3700, "1h 30m", "1h 2m"),
        (100_000, "P1D", "P1DT4H"),
        (61, "01:30:00", "00:01:01"),
        (4000, "30:00", "66:40"),
        (200_000, "1-00:00:00", "2-07:33:20"),
        (77.5, "60", "78"),
        (0.3, "5s", "1s"),
    ],
)
def test_a_runtime_keeps_its_notation(seconds: float, like: str, expected: str) -> None:
    assert expected == seconds_text(seconds, like)


@pytest.mark.parametrize(("cpus", "expected"), [(3.0, "3"), (1.5, "1.5"), (1.001, "1.01"), (0.1 + 0.2, "0.3")])
def test_cpus_are_rounded_up_to_hundredths(cpus: float, expected: str) -> None:
    assert expected == cpus_text(cpus)


def test_nothing_is_written_smaller_than_requested_and_nothing_much_larger() -> None:
    chance = random.Random(4)
    memories = ["8g", "8GiB", "512m", "1.5 GB", "77", "4k", "2T", "9PiB"]
    durations = [
        "PT10M",
        "P1D",
        "P1DT2H",
        "P2W",
        "2h",
        "90m",
        "1h30m",
        "90min",
        "45s",
        "01:00:00",
        "90:00",
        "1-2",
        "600",
    ]
    for _ in range(20_000):
        size = int(10 ** chance.uniform(0, 15))
        assert size <= parse_bytes(memory_text(size, chance.choice(memories))) <= size * 1.11 + 1025
        seconds = round(10 ** chance.uniform(0, 7), chance.choice([0, 3]))
        assert (
            seconds
            <= parse_seconds(seconds_text(seconds, chance.choice(durations)))
            <= max(seconds * 1.11, seconds + 1)
        )
