"""Settings: their values and where they come from.

Values given in the call take precedence over the environment, that over the project's
file (`jobmeter.toml`, here or in a directory above), and that over the user's. A file that
another user could have written is ignored (`config`).
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator

from jobmeter.errors import UsageError, quote
from jobmeter.light_typing import Any
from jobmeter.redaction import redaction
from jobmeter.units import parse_bytes, parse_seconds
from jobmeter.working_directory import absolute_path, present_directory

MOST_CPUS = 1e9
LEAST_MEMORY = 1024
"""The fewest bytes that can be requested: for a smaller number, the unit was probably forgotten."""

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
    """An amount of memory to request, in bytes. Raises UsageError below 1 KiB: usually, the unit was forgotten."""
    amount = parse_bytes(text)
    if amount <= 0:
        raise UsageError(f"{text!r} is not above 0")
    if amount < LEAST_MEMORY:
        number = text.strip()
        if number[-1].isdigit():
            raise UsageError(f"{number} has no unit. Write {number}g or {number}m.")
        raise UsageError(f"{text!r} is less than 1 KiB, too little for any program. Write for example 512m or 8g.")
    return amount


def memory_bytes(memory: int | str | None) -> int | None:
    """As `positive_bytes`, for a call from Python, where memory may be a number of bytes or None."""
    if memory is None:
        return None
    try:
        return positive_bytes(memory if isinstance(memory, str) else str(int(memory)))
    except UsageError as error:
        raise UsageError(f"memory: {error}") from None


def positive_number(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number < float("inf"):
        raise UsageError(f"{quote(text)} is not a number above 0")
    return number


def factor(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0 <= number < float("inf"):
        raise UsageError(f"{quote(text)} is not a number from 0 up")
    return number


def line_percent(text: str) -> float:
    """A percentage of at most 100: 90 for `90` and `90%`."""
    percent = positive_number(text.removesuffix("%").strip())
    if percent > 100:
        raise UsageError(f"{quote(text)} is more than 100 %")
    return percent


def cpu_number(text: str) -> float:
    number = positive_number(text)
    if number > MOST_CPUS:
        raise UsageError(f"{quote(text)} is more CPUs than any machine has")
    return number


def signed_whole_number(text: str, least: int = -999_999_999, expected: str = "a whole number") -> int:
    """`text` as an int from `least` up: at most nine digits, with or without a sign.

    Raises UsageError, which says that `text` is not `expected`.
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


def redact_pattern(text: str) -> str:
    redaction((text,))
    return text


def group_name(text: str) -> str:
    import grp  # late: few users name a group

    try:
        return grp.getgrnam(text).gr_name
    except (KeyError, ValueError):
        raise UsageError(f"there is no group {quote(text)}. `getent group` lists all") from None


def label(text: str) -> tuple[str, str]:
    key, separator, value = text.partition("=")
    if not key or not separator:
        raise UsageError(f"{text!r} is not KEY=VALUE")
    return key, value


def one_of(*choices: str) -> Callable[[str], str]:
    def convert(text: str) -> str:
        if text not in choices:
            raise UsageError(f"{text!r} is not one of {', '.join(choices)}")
        return text

    return convert


def default_store() -> str:
    """`jobmeter` in the XDG data directory."""
    data = os.environ.get("XDG_DATA_HOME") or os.path.expanduser("~/.local/share")
    return os.path.join(data, "jobmeter")


def directory_store(text: str) -> str:
    if "\0" in text:
        raise UsageError(f"{quote(text)}: no name of a directory has a NUL in it")
    if "://" in text:
        raise UsageError(f"{text!r}: runs are stored in a directory; a database cannot be used here")
    if not text:
        raise UsageError("the store's name is empty")
    return absolute_path(os.path.expanduser(text))


class Setting:
    """An option that may also be set in the environment and in configuration files."""

    def __init__(
        self,
        name: str,
        parse: Callable[[str], Any],
        *,
        environment: str | None,
        default: Any,
        written_as: tuple[type, ...] = (str,),
        each: bool = False,
    ) -> None:
        """`written_as` are the types that the value may have in a configuration file.

        Of a list, `parse` gets the items one by one if `each` is true, otherwise all of them joined by commas.
        """
        self.name = name
        self.parse = parse
        self.environment = environment
        self.default = default
        self.written_as = written_as
        self.each = each

    def convert(self, text: str, where: str) -> Any:
        try:
            return self.parse(text)
        except UsageError as error:
            raise UsageError(f"{where}: {error}") from None

    def convert_written(self, raw: Any, where: str) -> Any:
        """The value of the setting if a configuration file has `raw`. Raises UsageError if that is not valid."""
        # To Python a bool is an int; here it is not a number.
        if isinstance(raw, bool) or not isinstance(raw, self.written_as):
            expected = " or ".join(_TYPE_NAMES[each] for each in self.written_as)
            raise UsageError(f"{where}: {quote(raw)} is not {expected}")
        if not isinstance(raw, list):
            return self.convert(str(raw), where)
        if not all(isinstance(each, str) for each in raw):
            raise UsageError(f"{where}: {quote(raw)} is not a list of texts")
        if self.each:
            return [self.convert(each, where) for each in raw]
        return self.convert(",".join(raw), where)


_TYPE_NAMES = {str: "a text", int: "a number", float: "a number with a point", list: "a list of texts"}
_AMOUNT = (str, int, float)

FACTORS = ("carbon_per_kwh", "price_per_kwh", "price_per_core_hour", "price_per_gb_hour", "price_per_gpu_hour")
"""The settings for what energy and hours cost, in grams of CO2 and in money."""

SETTINGS = {
    setting.name: setting
    for setting in (
        Setting("interval", sampling_interval, environment="JOBMETER_INTERVAL", default=1.0, written_as=_AMOUNT),
        Setting("window", positive_seconds, environment=None, default=None, written_as=_AMOUNT),
        Setting("measurements", key_list, environment="JOBMETER_MEASUREMENTS", default=None, written_as=(list, str)),
        Setting("store", directory_store, environment="JOBMETER_STORE", default=None),
        Setting("share_group", group_name, environment=None, default=None),
        Setting("redact", redact_pattern, environment=None, default=None, written_as=(list,), each=True),
        Setting("cpu_watts", positive_number, environment="JOBMETER_CPU_WATTS", default=None, written_as=_AMOUNT),
        *(Setting(name, factor, environment=None, default=None, written_as=_AMOUNT) for name in FACTORS),
        # Thresholds for findings about a cluster: the share that is high, the share that is low, and for how long.
        Setting("cluster_high", line_percent, environment=None, default=90.0, written_as=_AMOUNT),
        Setting("cluster_low", line_percent, environment=None, default=30.0, written_as=_AMOUNT),
        Setting("cluster_after", positive_seconds, environment=None, default=60.0, written_as=_AMOUNT),
        Setting("orphans", one_of("leave", "wait", "end"), environment=None, default="leave"),
    )
}

Warn = Callable[[str], None]


def resolve(name: str, given: str | None = None, warn: Warn | None = None) -> Any:
    """The value of one setting; see `Configuration`."""
    return Configuration(warn).resolve(name, given)


class Configuration:
    """Resolves settings from the environment and from files. Files are read once, when one is first needed."""

    def __init__(self, warn: Warn | None = None) -> None:
        """With `warn`, a problem in a file is reported to it and the part is ignored, so that it never stops a job."""
        self._warn = warn
        self._files: list[tuple[str, dict[str, Any]]] | None = None

    def resolve(self, name: str, given: str | None = None) -> Any:
        """The value of a setting: given on the command line, else in the environment, else in a file.

        Raises UsageError if the value is not valid.
        """
        setting = SETTINGS[name]
        if given is not None:
            return setting.convert(given, f"--{name.replace('_', '-')}")
        if setting.environment is not None and os.environ.get(setting.environment):
            return setting.convert(os.environ[setting.environment], setting.environment)
        for path, values in self.files():
            if name in values:
                try:
                    return setting.convert_written(values[name], f"{path}: {name}")
                except UsageError as error:
                    if self._warn is None:
                        raise
                    _warn_once(self._warn, f"{error}; this value is ignored")
        return setting.default if name != "store" else default_store()

    def is_from_file(self, name: str, given: str | None) -> bool:
        """Whether the value of a setting comes from a configuration file."""
        variable = SETTINGS[name].environment
        if given is not None or (variable is not None and os.environ.get(variable)):
            return False
        return any(name in values for _, values in self.files())

    def files(self) -> list[tuple[str, dict[str, Any]]]:
        """The files that are used, with their content: the nearest trusted one of the project, then the user's."""
        if self._files is None:
            self._files = list(_obeyed(self._warn))
        return self._files


def config_files() -> list[str]:
    """The configuration files that exist, in order of precedence: the project's, nearest first, then the user's.

    Of the project's files, only the first that can be trusted is used.
    """
    directory = present_directory() or "/"
    paths = []
    while True:
        path = os.path.join(directory, "jobmeter.toml")
        if os.path.lexists(path):
            paths.append(path)
        if directory == os.path.dirname(directory):
            break
        directory = os.path.dirname(directory)
    home = os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")
    path = os.path.join(home, "jobmeter", "config.toml")
    if os.path.lexists(path):
        paths.append(path)
    return paths


def _obeyed(warn: Warn | None) -> Iterator[tuple[str, dict[str, Any]]]:
    paths = config_files()
    if not paths:
        return
    from jobmeter.config import NotTrusted, read_config

    project_has_one = False
    for path in paths:
        is_project = os.path.basename(path) == "jobmeter.toml"
        if is_project and project_has_one:
            continue
        try:
            values = read_config(path)
            _check_names(path, values, warn)
        except NotTrusted as error:
            # Every command reports this once: the user may expect that the file is used.
            _warn_once(warn or _print_warning, str(error))
            continue
        except UsageError as error:
            if warn is None:
                raise
            _warn_once(warn, f"{error}. This file is ignored.")
            continue
        project_has_one = project_has_one or is_project
        yield path, values


def _check_names(path: str, values: dict[str, Any], warn: Warn | None) -> None:
    for name in values:
        if name not in SETTINGS:
            from jobmeter.suggestion import suggest  # late: few runs need it

            message = f"{path}: there is no setting {quote(name)}. {suggest(name, SETTINGS)}"
            if warn is None:
                raise UsageError(message)
            _warn_once(warn, message)


_warned: set[str] = set()


def _warn_once(warn: Warn, message: str) -> None:
    """Report a message once, even if the command reads the same file several times."""
    if message not in _warned:
        _warned.add(message)
        warn(message)


def _print_warning(message: str) -> None:
    if sys.stderr is not None:
        from jobmeter.terminal import printable  # late: few commands warn

        sys.stderr.write(f"jobmeter: {printable(message)}\n")
