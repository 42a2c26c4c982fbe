r"""Bytes as text: the one representation of names, commands and paths that need not be UTF-8.

The kernel's texts are bytes. In Python they are strings in which a byte that is not UTF-8 is a surrogate (PEP 383):
`sys.argv` and `os.listdir` return them, `os.fsencode` takes them. A lone surrogate is not valid Unicode: databases,
Parquet and many parsers of JSON refuse it. So in a record, and in everything that is stored, exported or printed, such
a byte is U+FFFD (the replacement character) and two hexadecimal digits: `caf\xe9` is `caf�e9`.

A U+FFFD in the text itself is represented as its three bytes if digits from 80 to ff follow it, otherwise it stays. So
no two texts have the same representation, and `to_bytes` restores the bytes of each.
"""

from __future__ import annotations

import codecs
import functools
import json

from jobmeter.light_typing import Any

MARK = "\ufffd"
_MARK_BYTES = MARK.encode()
_MARK_SPELT = "".join(f"{MARK}{byte:02x}" for byte in _MARK_BYTES).encode()
_HIGH, _DIGITS = b"89abcdef", b"0123456789abcdef"
_ERRORS = "jobmeter.byte_text"


def to_text(words: str) -> str:
    """The representation of a string as the operating system gave it: an argument, a path, a variable's value."""
    return words if words.isascii() else bytes_to_text(_raw(words))


def bytes_to_text(raw: bytes) -> str:
    """The representation of bytes."""
    if _MARK_BYTES in raw:
        first, *others = raw.split(_MARK_BYTES)
        raw = first + b"".join((_MARK_SPELT if _spells_byte(part) else _MARK_BYTES) + part for part in others)
    return raw.decode("utf-8", _ERRORS)


def to_bytes(text: str) -> bytes:
    """The bytes that a text represents: the reverse of `bytes_to_text`, and of `to_text`."""
    first, *others = as_represented(text).split(MARK)
    parts = [first.encode()]
    for part in others:
        raw = part.encode()
        parts.append(bytes.fromhex(part[:2]) + raw[2:] if _spells_byte(raw) else _MARK_BYTES + raw)
    return b"".join(parts)


def to_path(text: str) -> str:
    """The string for the operating system that a text represents."""
    return to_bytes(text).decode("utf-8", "surrogateescape")


def as_represented(words: str) -> str:
    """The representation of a text from a user: with surrogates for bytes, or copied from jobmeter's output."""
    return words if words.isascii() else _raw(words).decode("utf-8", _ERRORS)


def without_surrogates(value: Any) -> Any:
    """The JSON value with every text `as_represented`: earlier versions and other programs wrote surrogates."""
    if isinstance(value, str):
        return as_represented(value)
    if isinstance(value, dict):
        return {without_surrogates(key): without_surrogates(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [without_surrogates(each) for each in value]
    return value


def json_text(value: Any, *, indent: int | None = None, separators: tuple[str, str] | None = None) -> str:
    """The value as JSON in ASCII: control characters in texts are escaped for terminals, and no surrogate is alone."""
    encoder = _encoder(indent, separators)
    text = encoder.encode(value)
    if "\\ud" in text:  # a surrogate, or a pair of them for a character beyond U+FFFF
        text = encoder.encode(without_surrogates(value))
    return text.replace("\x7f", "\\u007f")


@functools.cache
def _encoder(indent: int | None, separators: tuple[str, str] | None) -> json.JSONEncoder:
    # No value here contains itself, and checking for that takes a fifth of the time.
    return json.JSONEncoder(indent=indent, separators=separators, check_circular=False)


def _raw(words: str) -> bytes:
    try:
        return words.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        # JSON can contain surrogates that stand for no byte.
        return b"".join(
            letter.encode("utf-8", "surrogateescape" if "\udc80" <= letter <= "\udcff" else "surrogatepass")
            for letter in words
        )


def _spells_byte(after_mark: bytes) -> bool:
    """Whether a U+FFFD before these bytes would be read as the mark of a byte."""
    return len(after_mark) >= 2 and after_mark[0] in _HIGH and after_mark[1] in _DIGITS


def _spell(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeDecodeError)
    return "".join(f"{MARK}{byte:02x}" for byte in error.object[error.start : error.end]), error.end


codecs.register_error(_ERRORS, _spell)
