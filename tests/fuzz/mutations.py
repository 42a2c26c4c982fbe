"""Makes bad files out of good ones: a hostile value somewhere in their structure, or bytes that are changed."""

from __future__ import annotations

import copy
import json
from random import Random
from typing import Any

HOSTILE: list[Any] = [
    None, True, False, 0, -1, 1.5, 10**400, -(10**400), 2**63, 2**63 - 1, 2**31, 1e308, -1e308, 1e-320,
    float("inf"), float("-inf"), float("nan"), "", " ", "\0", "\ud800", "\udc80", "\udfff", "\x1b[31m", "\n",
    "a" * 70_000, "../../etc/passwd", "/dev/zero", "=1+1", "'; DROP TABLE job_metadata; --", "%s%n{}", "<script>",
    "ä🦆",
    "\u202e", "NaN", "1e999", "9999-99-99T99:99:99Z", "2026-02-30T00:00:00.000Z", "0000-00-00T00:00:00Z",
    [], {}, [[]], [None], {"": None}, {"a": {}}, [1, 2, 3], ["x"], [1e308, -1e308], {"kind": "gauge"}, {"id": 5},
    {"value": None}, {"value": 10**400, "from": "x", "quality": "exact"}, ["\ud800"], {"\ud800": "x"},
    "completed", "running", "exact", "gauge", "counter", "label", "category", "bytes", "jobmeter.run/1",
]  # fmt: skip
"""What a field may hold that nobody expects there."""
_PIECES = [b"\0", b"\xff", b"\n", b"\r", b'"', b"{", b"}", b"[", b"]", b",", b":", b"\xed\xa0\x80", b"9" * 400,
           b"1e999", b"NaN", b"Infinity", b"-", b"\\ud800", b"\t", b"|", b"\xef\xbb\xbf", b"null",
           b"[" * 5000, b'{"a":' * 900]  # fmt: skip


def nested(depth: int) -> Any:
    value: Any = 1
    for level in range(depth):
        value = [value] if level % 2 else {"a": value}
    return value


def mutated_value(value: Any, rng: Random) -> Any:
    """A copy with something changed in one to three places."""
    value = copy.deepcopy(value)
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        value = _mutated_once(value, rng)
    return value


def _mutated_once(value: Any, rng: Random) -> Any:
    places = list(_places(value))
    if not places:
        return _hostile(rng)
    holder, key = rng.choice(places)
    action = rng.randrange(6)
    if action <= 2:
        holder[key] = _hostile(rng)
    elif action == 3:
        del holder[key]
    elif action == 4:
        other_holder, other_key = rng.choice(places)
        other = copy.deepcopy(other_holder[other_key])
        holder[key], other_holder[other_key] = other, copy.deepcopy(holder[key])
    elif isinstance(holder, list):
        holder.insert(key, copy.deepcopy(holder[key]))
    else:
        holder[rng.choice(["extra", "id", "name", "", "\ud800", str(key) * 2])] = copy.deepcopy(holder[key])
    return value


def _hostile(rng: Random) -> Any:
    if rng.randrange(20) == 0:
        return nested(rng.choice((5, 30, 150)))
    return copy.deepcopy(rng.choice(HOSTILE))  # what is put in place may itself be changed


def _places(value: Any) -> list[tuple[Any, Any]]:
    """Every place in it, as what holds it and the key or number there."""
    places: list[tuple[Any, Any]] = []
    todo = [value]
    while todo:
        holder = todo.pop()
        keys = list(holder) if isinstance(holder, dict) else range(len(holder)) if isinstance(holder, list) else ()
        for key in keys:
            places.append((holder, key))
            todo.append(holder[key])
    return places


def mutated_bytes(data: bytes, rng: Random) -> bytes:
    """The bytes with one to four of them flipped, or pieces cut, repeated or inserted."""
    for _ in range(rng.choice((1, 1, 2, 4))):
        at = rng.randrange(len(data) + 1)
        end = min(len(data), at + rng.choice((1, 2, 10, 100)))
        action = rng.randrange(6)
        if action == 0:
            data = data[:at] + bytes(byte ^ (1 << rng.randrange(8)) for byte in data[at : at + 1]) + data[at + 1 :]
        elif action == 1:
            data = data[:at]
        elif action == 2:
            data = data[:at] + data[end:]
        elif action == 3:
            data = data[:end] + data[at:end] + data[end:]
        else:
            data = data[:at] + rng.choice(_PIECES) + data[at:]
    return data


def mutated_lines(lines: list[Any], rng: Random) -> bytes:
    """A file of JSON lines with values, lines or bytes changed."""
    lines = list(lines)
    action = rng.randrange(10)
    at = rng.randrange(len(lines))
    if action <= 5:
        lines[at] = mutated_value(lines[at], rng)
    elif action == 6:
        lines.insert(rng.randrange(len(lines) + 1), mutated_value(rng.choice(lines), rng))
    elif action == 7:
        rng.shuffle(lines)
    data = b"".join(encoded(line) for line in lines)
    return mutated_bytes(data, rng) if action >= 8 else data


def encoded(line: Any) -> bytes:
    return json.dumps(line, separators=(",", ":")).encode() + b"\n"


def duplicated_key(data: bytes, rng: Random) -> bytes:
    """A key of an object twice, the second time with another value: readers may see either."""
    spots = [at for at in range(len(data)) if data.startswith(b',"', at) and b'"' in data[at + 2 :]]
    if not spots:
        return data
    at = rng.choice(spots)
    key = data[at + 1 : data.index(b'"', at + 2) + 1]
    value = json.dumps(rng.choice(HOSTILE)).encode()
    return data[:at] + b"," + key + b":" + value + data[at:]
