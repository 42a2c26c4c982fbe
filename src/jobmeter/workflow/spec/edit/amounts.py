"""Writing an amount in the way a person wrote the one before: `8GiB` becomes `11GiB`, `PT10M` becomes `PT15M`.

The written amount is never less than the one that is passed.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable

from jobmeter.units import parse_bytes, parse_seconds

_MEMORY = re.compile(r"\s*[\d.]+(\s*)([kmgtp]?)((?:i?b)?)\s*", re.IGNORECASE)
_UNITS = "kmgtp"
_ISO = re.compile(r"P(?=[\dT])[\dWDTHMS.]+", re.IGNORECASE)
_TIME_UNITS = (("w", 604800), ("d", 86400), ("h", 3600), ("m", 60), ("s", 1))
_COARSE = 10  # from so many units on, rounding up to a whole unit changes little


def memory_text(size: int, like: str) -> str:
    """`size` bytes, in the unit and spelling of `like`."""
    match = _MEMORY.fullmatch(like)
    if match is None or not match[2]:
        return str(size) + (match[1] + match[3] if match is not None else "")
    space, unit, ending = match.groups()
    power = _UNITS.index(unit.lower())
    while power > 0 and size < 1024 ** (power + 1):
        power -= 1
    letter = _UNITS[power].upper() if unit.isupper() else _UNITS[power]
    return f"{_rounded_up(size / 1024 ** (power + 1))}{space}{letter}{ending}"


def cpus_text(cpus: float, like: str = "") -> str:
    """A number of CPUs, with at most two decimals."""
    return f"{math.ceil(round(cpus * 100, 6)) / 100:.2f}".rstrip("0").rstrip(".")


def gpus_text(gpus: float, like: str = "") -> str:
    return str(math.ceil(gpus))


def seconds_text(seconds: float, like: str) -> str:
    """`seconds` in the notation of `like`: ISO 8601, `1h30m`, `01:30:00` or a number."""
    notation = like.strip()
    if re.fullmatch(r"[\d.]+", notation):
        return str(math.ceil(seconds))
    if ":" in notation or re.fullmatch(r"\d+-\d+", notation):
        return _clock(math.ceil(seconds), notation)
    if _ISO.fullmatch(notation):
        return _iso(_split(seconds, notation))
    return _parts(seconds, notation)


def _rounded_up(amount: float) -> str:
    """`amount` rounded up: with one decimal below ten, with none above."""
    if amount >= _COARSE:
        return str(math.ceil(amount))
    return f"{math.ceil(amount * 10) / 10:.1f}".removesuffix(".0")


def _split(seconds: float, letters: str) -> list[tuple[int, str]]:
    """`seconds` in weeks, days, hours, minutes and seconds.

    No unit is larger than the largest of `letters`, and none finer than the finest of them if that is precise enough.
    """
    used = [unit for unit, _ in _TIME_UNITS if unit in letters.lower()] or ["s"]
    largest = [unit for unit, _ in _TIME_UNITS].index(used[0])
    finest = dict(_TIME_UNITS)[used[-1]]
    whole = seconds / finest
    if whole < _COARSE and abs(whole - round(whole)) > 1e-9:
        finest = next((length for _, length in _TIME_UNITS if length <= seconds / _COARSE), 1)
    rest = max(1, math.ceil(round(seconds / finest, 6))) * finest
    parts = []
    for unit, length in _TIME_UNITS[largest:]:
        count, rest = divmod(rest, length)
        if count:
            parts.append((count, unit))
    return parts


def _iso(parts: list[tuple[int, str]]) -> str:
    days = "".join(f"{count}{unit.upper()}" for count, unit in parts if unit in "wd")
    times = "".join(f"{count}{unit.upper()}" for count, unit in parts if unit in "hms")
    return f"P{days}" + (f"T{times}" if times else "")


def _parts(seconds: float, notation: str) -> str:
    """`1h30m`, `1h 30m`, `90min`."""
    # Milliseconds are too fine for a request.
    letters = notation.lower().replace("ms", "s").replace("min", "m")
    minute = "min" if "min" in notation.lower() else "m"
    words = [f"{count}{minute if unit == 'm' else unit}" for count, unit in _split(seconds, letters)]
    written = (" " if re.search(r"[a-z]\s+\d", notation, re.IGNORECASE) else "").join(words)
    return written.upper() if notation.isupper() else written


def _clock(seconds: int, notation: str) -> str:
    """`01:30:00`, `90:00`, `1-02:00:00`."""
    minutes, second = divmod(seconds, 60)
    if notation.count(":") == 1 and "-" not in notation:
        return f"{minutes:02d}:{second:02d}"
    hours, minute = divmod(minutes, 60)
    if "-" not in notation:
        return f"{hours:02d}:{minute:02d}:{second:02d}"
    day, hour = divmod(hours, 24)
    return f"{day}-{hour:02d}:{minute:02d}:{second:02d}"


WRITERS: dict[str, Callable[[float, str], str]] = {
    "cpus": cpus_text,
    "memory": lambda size, like: memory_text(math.ceil(size), like),
    "runtime": seconds_text,
    "gpus": gpus_text,
}
"""How each field of a requirement is written."""
READERS: dict[str, Callable[[str], float]] = {
    "cpus": float,
    "memory": parse_bytes,
    "runtime": parse_seconds,
    "gpus": float,
}
USUAL = {"cpus": "1", "memory": "1g", "runtime": "1h", "gpus": "1"}
"""The notation for a field of which the spec has no value yet."""
