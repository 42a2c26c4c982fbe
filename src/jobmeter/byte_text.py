r"""Bytes as text: the one representation of names, commands and paths that need not be UTF-8.

The kernel's texts are bytes. Within Python they are strings in which a byte that is not UTF-8 is a surrogate (PEP 383),
as `sys.argv` and `os.listdir` give them and `os.fsencode` takes them. Lone surrogates are no Unicode text: databases,
Parquet, and many readers of JSON refuse them. So a record, and with it everything that is stored, exported or printed,
has U+FFFD (the replacement character) and the byte in two hexadecimal digits instead: `caf\xe9` is `caf�e9`.

A U+FFFD of the text itself is written as its three bytes where two such digits follow it, else as it is. So no two
texts are represented alike, and `to_bytes` gives back the bytes of each.
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
    """The text that a person means who wrote some bytes as they are, or copied them as jobmeter prints them."""
    return words if words.isascii() else _raw(words).decode("utf-8", _ERRORS)


def without_surrogates(value: Any) -> Any:
    """The value of JSON with every text `as_represented`: earlier versions and other programs wrote surrogates."""
    if isinstance(value, str):
        return as_represented(value)
    if isinstance(value, dict):
        return {without_surrogates(key): without_surrogates(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [without_surrogates(each) for each in value]
    return value


def json_text(value: Any, *, indent: int | None = None, separators: tuple[str, str] | None = None) -> str:
    """The value as JSON, in ASCII: no control character in it is one to a terminal, and no surrogate is alone."""
    encoder = _encoder(indent, separators)
    text = encoder.encode(value)
    if "\\ud" in text:  # a surrogate, or a pair of them for a character beyond U+FFFF
        text = encoder.encode(without_surrogates(value))
    return text.replace("\x7f", "\\u007f")


@functools.cache
def _encoder(indent: int | None, separators: tuple[str, str] | None) -> json.JSONEncoder:
    # Nothing here contains itself, and to check for it takes a fifth of the time.
    return json.JSONEncoder(indent=indent, separators=separators, check_circular=False)


def _raw(words: str) -> bytes:
    try:
        return words.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        # Surrogates that stand for no byte, as JSON can have them.
        return b"".join(
            letter.encode("utf-8", "surrogateescape" if "\udc80" <= letter <= "\udcff" else "surrogatepass")
            for letter in words
        )


def _spells_byte(after_mark: bytes) -> bool:
    """Whether a mark before these bytes would be read as that of a byte."""
    return len(after_mark) >= 2 and after_mark[0] in _HIGH and after_mark[1] in _DIGITS


def _spell(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeDecodeError)
    return "".join(f"{MARK}{byte:02x}" for byte in error.object[error.start : error.end]), error.end


codecs.register_error(_ERRORS, _spell)
