from __future__ import annotations

import pytest

from jobmeter import units
from jobmeter.errors import UsageError


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("4096", 4096),
        ("0", 0),
        ("100B", 100),
        ("8g", 8 * 2**30),
        ("8G", 8 * 2**30),
        ("8GiB", 8 * 2**30),
        ("8GB", 8 * 2**30),
        ("8 GiB", 8 * 2**30),
        (" 512m ", 512 * 2**20),
        ("1.5G", 3 * 2**29),
        ("1.5GiB", 3 * 2**29),
        (".5k", 512),
        ("2.k", 2048),
        ("3t", 3 * 2**40),
        ("1p", 2**50),
    ],
)
def test_an_amount_of_memory_is_read_as_powers_of_1024(text: str, expected: int) -> None:
    assert expected == units.parse_bytes(text)


@pytest.mark.parametrize("text", ["", " ", "g", "-1g", "8x", "8gg", "8 g b", "1e9", "0x10", "1,5g", "1.2.3g", "inf"])
def test_what_is_no_amount_of_memory_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(UsageError, match=r"is not an amount of memory\. Write for example") as refused:
        units.parse_bytes(text)
    assert repr(text) in str(refused.value)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("90", 90.0),
        ("1.5", 1.5),
        (".5", 0.5),
        ("90s", 90.0),
        (" 90 s ", 90.0),
        ("250ms", 0.25),
        ("2m", 120.0),
        ("2min", 120.0),
        ("1.5h", 5400.0),
        ("1h30m", 5400.0),
        ("1h 30m 5s", 5405.0),
        ("1H30M", 5400.0),
        ("1d", 86400.0),
        ("2w", 1209600.0),
        ("01:30:00", 5400.0),
        ("05:30", 330.0),
        ("100:00:00", 360000.0),
        ("PT1H30M", 5400.0),
        ("pt1h30m", 5400.0),
        ("PT0.5S", 0.5),
        ("P1DT12H", 129600.0),
        ("P2W", 1209600.0),
    ],
)
def test_a_duration_is_read_in_every_usual_form(text: str, expected: float) -> None:
    assert expected == units.parse_seconds(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("2-00:00:10", 172810.0), ("1-02:03", 86400.0 + 2 * 3600 + 3 * 60), ("1-12", 86400.0 + 12 * 3600)],
)
def test_after_days_and_a_dash_the_hours_come_first_as_in_slurm(text: str, expected: float) -> None:
    assert expected == units.parse_seconds(text)


@pytest.mark.parametrize(
    "text",
    ["", "h", "-5", "1h30", "1 1h", "1.5.5s", "5 parsecs", "P", "PT", "1:2:3:4", "1:", "-1:00", "inf", "nan", "1h,30m"],
)
def test_what_is_no_duration_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(UsageError, match=r"is not a duration\. Write for example") as refused:
        units.parse_seconds(text)
    assert repr(text) in str(refused.value)


KIB, MIB, GIB = 2.0**10, 2.0**20, 2.0**30


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (0, "0 B"),
        (1, "1 B"),
        (-0.2, "0 B"),
        (1023, "1023 B"),
        (1023.7, "1 KiB"),
        (1024, "1 KiB"),
        (1536, "1.5 KiB"),
        (99.97 * KIB, "100 KiB"),
        (1000 * KIB, "1000 KiB"),
        (1023.4 * KIB, "1023 KiB"),
        (1023.9 * KIB, "1 MiB"),
        (1023.9 * MIB, "1 GiB"),
        (1.5 * GIB, "1.5 GiB"),
        (12.34 * GIB, "12.3 GiB"),
        (123.4 * GIB, "123 GiB"),
        (-1.5 * GIB, "-1.5 GiB"),
        (3 * 2.0**40, "3 TiB"),
        (2000 * 2.0**40, "1.95 PiB"),
        (2.0**60, "1 EiB"),
        (2.0**80, "1,048,576 EiB"),
    ],
)
def test_bytes_are_written_with_the_largest_unit_that_fits(value: float, expected: str) -> None:
    assert expected == units.text(value, "bytes")


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (0, "0 ms"),
        (1e-9, "0 ms"),
        (0.000012, "0.012 ms"),
        (0.0123, "12.3 ms"),
        (0.09999, "100 ms"),
        (0.1, "0.10 s"),
        (12.345, "12.35 s"),
        (59.99, "59.99 s"),
        (59.999, "1m 0s"),
        (60, "1m 0s"),
        (125, "2m 5s"),
        (3599.6, "1h 0m 0s"),
        (3661, "1h 1m 1s"),
        (86400, "1d 0h 0m 0s"),
        (1e9, "11574d 1h 46m 40s"),
        (-5, "-5 s"),
        (5.0, "5 s"),
        (5.001, "5.00 s"),
        (-125, "-2m 5s"),
    ],
)
def test_seconds_are_written_so_that_a_person_can_say_them(value: float, expected: str) -> None:
    assert expected == units.text(value, "seconds")


@pytest.mark.parametrize(
    ("value", "unit", "expected"),
    [
        (0, "percent", "0.0 %"),
        (-0.01, "percent", "0.0 %"),
        (0.44, "percent", "0.4 %"),
        (9.94, "percent", "9.9 %"),
        (9.96, "percent", "10 %"),
        (180.4, "percent", "180 %"),
        (-50, "percent", "-50 %"),
        (12800, "percent", "12800 %"),
        (0, "count", "0"),
        (7, "count", "7"),
        (-3, "count", "-3"),
        (2.0, "count", "2"),
        (1.25, "count", "1.25"),
        (0.5, "count", "0.5"),
        (1234567, "count", "1,234,567"),
        (10**15, "count", "1,000,000,000,000,000"),
        (0, "joules", "0 J"),
        (12.5, "joules", "12.5 J"),
        (123456.7, "joules", "123,457 J"),
        (15.25, "watts", "15.25 W"),
        (-4.5, "celsius", "-4.5 °C"),
        (3, "furlongs", "3 furlongs"),
        (3, "", "3"),
    ],
)
def test_every_other_unit_is_written_with_its_symbol_and_no_exponent(value: float, unit: str, expected: str) -> None:
    assert expected == units.text(value, unit)


@pytest.mark.parametrize(
    ("largest", "unit", "expected"),
    [
        (1.5 * 2**30, "bytes", (2.0**30, "GiB")),
        (2**30, "bytes", (2.0**30, "GiB")),
        (1000 * 2**20, "bytes", (2.0**20, "MiB")),
        (0, "bytes", (1.0, "B")),
        (100, "seconds", (1.0, "s")),
        (120, "seconds", (60.0, "min")),
        (7200, "seconds", (3600.0, "h")),
        (3 * 86400, "seconds", (86400.0, "d")),
        (3200, "percent", (1.0, "%")),
        (12, "count", (1.0, "")),
        (250, "watts", (1.0, "W")),
        (3, "furlongs", (1.0, "furlongs")),
    ],
)
def test_an_axis_has_a_unit_that_gives_short_numbers(largest: float, unit: str, expected: tuple[float, str]) -> None:
    assert expected == units.scale(largest, unit)


@pytest.mark.parametrize(
    ("share", "expected"),
    [(0.0, "0.0 %"), (0.0001, "< 1 %"), (0.01, "1.0 %"), (0.034, "3.4 %"), (0.75, "75 %"), (1.16, "116 %")],
)
def test_a_share_that_is_small_is_not_written_as_nothing(share: float, expected: str) -> None:
    assert expected == units.share_text(share)
