"""Numbers with units: parses what people write, and formats what people read."""

from __future__ import annotations

import re

from jobmeter.errors import UsageError

_LONGEST = 40  # characters: the number in a longer text is too large in any case
_MOST = 1e30
"""Larger numbers of bytes or seconds are mistakes."""
_BINARY = {"": 1, "k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40, "p": 2**50}
# Patterns are compiled when they are used first: few runs parse an amount, and compiling takes longer than importing.
_BYTES = r"(\d+(?:\.\d*)?|\.\d+)\s*([kmgtp]?)(i?b)?"
_SECONDS = {"": 1.0, "ms": 0.001, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0}
_DURATION_PART = r"(\d+(?:\.\d*)?|\.\d+)\s*(ms|min|[smhdw])"
_ISO_DURATION = r"P(?:(?P<w>\d+)W)?(?:(?P<d>\d+)D)?(?:T(?:(?P<h>\d+)H)?(?:(?P<m>\d+)M)?(?:(?P<s>\d+(?:\.\d+)?)S)?)?"


def parse_bytes(text: str) -> int:
    """Return the bytes that `text` means: `8g`, `8GiB`, `512m`, `1.5G`, `4096`.

    The letters are powers of 1024, as in Slurm, Docker and ulimit; `8GB` is read the same way.
    """
    match = re.fullmatch(_BYTES, text.strip()[:_LONGEST], re.IGNORECASE)
    if match is None:
        raise UsageError(f"{text!r} is not an amount of memory. Write for example 512m, 8g or 1.5GiB.")
    amount = float(match[1]) * _BINARY[match[2].lower()]
    if amount >= _MOST:
        raise UsageError(f"{text!r} is more memory than any machine has")
    return round(amount)


def parse_seconds(text: str) -> float:
    """Return the seconds that `text` means: `90`, `90s`, `1.5h`, `1h30m`, `01:30:00`, `PT1H30M`."""
    stripped = text.strip()[:_LONGEST]
    for reader in (_seconds_plain, _seconds_clock, _seconds_iso, _seconds_parts):
        seconds = reader(stripped)
        if seconds is not None and seconds < _MOST:
            return seconds
    raise UsageError(f"{text!r} is not a duration. Write for example 90s, 2h, 1h30m, 01:30:00 or PT1H30M.")


def _seconds_plain(text: str) -> float | None:
    return float(text) if re.fullmatch(r"\d+(\.\d*)?|\.\d+", text) else None


def _seconds_clock(text: str) -> float | None:
    """Slurm's `hours:minutes:seconds`, `minutes:seconds`, and `days-hours[:minutes[:seconds]]`."""
    match = re.fullmatch(r"(?:(\d+)-)?(\d+(?::\d+){0,2})", text)
    if match is None:
        return None
    days, parts = match[1], [int(part) for part in match[2].split(":")]
    if days is not None:
        # After days, the first part is the hours, however many parts there are.
        parts += [0] * (3 - len(parts))
    seconds = 0.0
    for part in parts:
        seconds = seconds * 60 + part
    return seconds + int(days or 0) * _SECONDS["d"]


def _seconds_iso(text: str) -> float | None:
    match = re.fullmatch(_ISO_DURATION, text, re.IGNORECASE)
    if match is None or not any(match.groups()):
        return None
    return sum(float(number) * _SECONDS[unit] for unit, number in match.groupdict().items() if number)


def _seconds_parts(text: str) -> float | None:
    parts = re.findall(_DURATION_PART, text, re.IGNORECASE)
    if not parts or re.sub(_DURATION_PART, "", text, flags=re.IGNORECASE).strip():
        return None
    return sum(float(number) * _SECONDS[unit.lower()] for number, unit in parts)


def text(value: float, unit: str) -> str:
    """Write `value` for people, with its unit: `1.5 GiB`, `2m 5s`, `180 %`."""
    if unit == "bytes":
        return _bytes_text(value)
    if unit == "seconds":
        return _seconds_text(value)
    if unit == "percent":
        return f"{value:.0f} %" if abs(value) >= 9.95 else f"{round(value, 1) + 0.0:.1f} %"
    if unit == "count":
        return f"{value:,.0f}" if value % 1 == 0 else f"{value:,.2f}".rstrip("0").rstrip(".")
    number = f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
    return f"{number} {_SYMBOL.get(unit, unit)}".rstrip()


def share_text(share: float) -> str:
    """Write a share, of which 1 is the whole, in percent: `75 %`, `3.4 %`; above 0 and below 0.01 it is `< 1 %`."""
    return "< 1 %" if 0 < share < 0.01 else text(100 * share, "percent")


def without_unit(field: str) -> str:
    """The name of a field without its unit, which the values show: `memory_peak` for `memory_peak_bytes`."""
    for unit in ("_seconds", "_bytes", "_percent"):
        field = field.removesuffix(unit)
    return field


_IN_MILLISECONDS = 0.2
"""Seconds. An axis that ends below this is in milliseconds."""


def scale(largest: float, unit: str) -> tuple[float, str]:
    """The divisor and the unit with which an axis up to `largest` has short numbers."""
    if unit == "seconds" and 0 < abs(largest) < _IN_MILLISECONDS:
        return 0.001, "ms"
    steps = _STEPS.get(unit, ((1.0, _SYMBOL.get(unit, unit)),))
    # Time switches to a larger unit at two of it: an axis that ends at 1.2 min reads worse than one that ends at 72 s.
    threshold = abs(largest) / 2 if unit == "seconds" else abs(largest)
    fitting = [step for step in steps if step[0] <= threshold]
    return fitting[-1] if fitting else steps[0]


_STEPS: dict[str, tuple[tuple[float, str], ...]] = {
    "bytes": tuple((2.0 ** (10 * power), f"{name}B") for power, name in enumerate(("", "Ki", "Mi", "Gi", "Ti", "Pi"))),
    "seconds": ((1.0, "s"), (60.0, "min"), (3600.0, "h"), (86400.0, "d")),
    "percent": ((1.0, "%"),),
    "count": ((1.0, ""),),
}
_SYMBOL = {"joules": "J", "watts": "W", "celsius": "°C"}


def _bytes_text(value: float) -> str:
    """Three digits, or four just below the next unit. The rounded number decides, so that none reads `1024 KiB`."""
    if abs(round(value)) < 1024:
        return f"{round(value)} B"
    for name in ("KiB", "MiB", "GiB", "TiB", "PiB"):
        value /= 1024
        number = f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}"
        if abs(float(number)) < 1024:
            return f"{number} {name}"
    return f"{value / 1024:,.0f} EiB"


def _seconds_text(value: float) -> str:
    if value < 0:
        return f"-{_seconds_text(-value)}"
    if value < 0.1:
        return f"{round(value * 1000, 3):.3g} ms"
    if value < 60 and value == int(value):
        return f"{value:.0f} s"
    if round(value, 2) < 60:
        return f"{value:.2f} s"
    minutes, seconds = divmod(round(value), 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    parts = [(days, "d"), (hours, "h"), (minutes, "m"), (seconds, "s")]
    while parts[0][0] == 0:
        parts.pop(0)
    return " ".join(f"{number}{name}" for number, name in parts)
