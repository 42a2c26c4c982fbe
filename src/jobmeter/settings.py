"""Settings: their values and where they come from.

Values given in the call take precedence over the environment, that over the project's
file (`jobmeter.toml`, here or in a directory above), and that over the user's.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from jobmeter.errors import UsageError, quote
from jobmeter.units import parse_bytes, parse_seconds

SHORTEST_INTERVAL = 0.005
"""Seconds. At shorter intervals the meter itself would use too much CPU."""


def positive_seconds(text: str) -> float:
    seconds = parse_seconds(text)
    if seconds <= 0:
        raise UsageError(f"{text!r} is not above 0")
    return seconds


def sampling_interval(text: str) -> float:
    seconds = positive_seconds(text)
    if seconds < SHORTEST_INTERVAL:
        raise UsageError(f"{text!r} is below {SHORTEST_INTERVAL:g} s, the shortest interval")
    return seconds


def positive_bytes(text: str) -> int:
    amount = parse_bytes(text)
    if amount <= 0:
        raise UsageError(f"{text!r} is not above 0")
    return amount


def positive_number(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number < float("inf"):
        raise UsageError(f"{text!r} is not a number above 0")
    return number


def signed_whole_number(text: str, least: int = -999_999_999, expected: str = "a whole number") -> int:
    """`text`, at most nine digits with or without a sign, as an int from `least` up.

    UsageError, which says that it is not `expected`.
    """
    digits = text[1:] if text[:1] in ("-", "+") else text
    if not digits.isascii() or not digits.isdecimal() or len(digits) > 9 or int(text) < least:
        raise UsageError(f"{quote(text)} is not {expected}")
    return int(text)


def whole_number(text: str) -> int:
    return signed_whole_number(text, 0, "a whole number from 0 up")


def positive_whole_number(text: str, expected: str = "a whole number above 0") -> int:
    return signed_whole_number(text, 1, expected)


def key_list(text: str) -> list[str]:
    return [word for word in text.replace(",", " ").split() if word]


def label(text: str) -> tuple[str, str]:
    key, separator, value = text.partition("=")
    if not key or not separator:
        raise UsageError(f"{text!r} is not KEY=VALUE")
    return key, value


def one_of(*choices: str) -> Callable[[str], str]:
    def convert(text: str) -> str:
        if text not in choices:
            raise UsageError(f"{text!r} is none of {', '.join(choices)}")
        return text

    return convert


def default_store() -> str:
    """`jobmeter` in the XDG data directory."""
    data = os.environ.get("XDG_DATA_HOME") or os.path.expanduser("~/.local/share")
    return os.path.join(data, "jobmeter")


def directory_store(text: str) -> str:
    if "://" in text:
        raise UsageError(f"{text!r}: runs are stored in a directory; a database cannot be used here")
    if not text:
        raise UsageError("the store's name is empty")
    return os.path.abspath(os.path.expanduser(text))


class Setting:
    """An option that may also be set in the environment and in configuration files."""

    def __init__(self, name: str, parse: Callable[[str], Any], *, environment: str | None, default: Any) -> None:
        self.name = name
        self.parse = parse
        self.environment = environment
        self.default = default

    def convert(self, raw: Any, where: str) -> Any:
        text = ",".join(map(str, raw)) if isinstance(raw, list) else str(raw)
        try:
            return self.parse(text)
        except UsageError as error:
            raise UsageError(f"{where}: {error}") from None


SETTINGS = {
    setting.name: setting
    for setting in (
        Setting("interval", sampling_interval, environment="JOBMETER_INTERVAL", default=1.0),
        Setting("window", positive_seconds, environment=None, default=10.0),
        Setting("measurements", key_list, environment="JOBMETER_MEASUREMENTS", default=None),
        Setting("store", directory_store, environment="JOBMETER_STORE", default=None),
        Setting("orphans", one_of("leave", "wait", "end"), environment=None, default="leave"),
    )
}


def resolve(name: str, given: str | None) -> Any:
    """The value of a setting: given on the command line, else in the environment, else in a file."""
    setting = SETTINGS[name]
    if given is not None:
        return setting.convert(given, f"--{name}")
    if setting.environment is not None and os.environ.get(setting.environment):
        return setting.convert(os.environ[setting.environment], setting.environment)
    for path in config_files():
        values = read_config(path)
        if name in values:
            return setting.convert(values[name], f"{path}: {name}")
    return setting.default if name != "store" else default_store()


def config_files() -> list[str]:
    """The configuration files that exist, in order of precedence."""
    paths = []
    try:
        directory = os.getcwd()
    except OSError:
        directory = "/"  # it was deleted
    while True:
        path = os.path.join(directory, "jobmeter.toml")
        if os.path.exists(path):
            paths.append(path)
            break
        if directory == os.path.dirname(directory):
            break
        directory = os.path.dirname(directory)
    home = os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")
    path = os.path.join(home, "jobmeter", "config.toml")
    if os.path.exists(path):
        paths.append(path)
    return paths


def read_config(path: str) -> dict[str, Any]:
    """The settings in one file. UsageError, with path and line, when it cannot be used."""
    try:
        import tomllib
    except ImportError:  # Python 3.10
        import tomli as tomllib  # type: ignore[no-redef,import-not-found,unused-ignore]

    try:
        with open(path, "rb") as file:
            values = tomllib.load(file)
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from None
    except ValueError as error:
        raise UsageError(f"{path}: {error}") from None
    for name in values:
        if name not in SETTINGS:
            from jobmeter.suggestion import suggest  # late: few runs need it

            raise UsageError(f"{path}: there is no setting {quote(name)}. {suggest(name, SETTINGS)}")
    return values
