"""Hides secrets in command lines before they are recorded. The job itself gets the command as it was given.

A pattern is the name of an option, a variable or a field, such as `*password` or `api-key`: its value is hidden. `-`,
`_` and `.` mean the same, and case does not matter. A pattern in slashes is a regular expression: its first group is
hidden, or the whole match if it has no group. `!NAME` is an exception, and `default` stands for the patterns below.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

from jobmeter.errors import UsageError
from jobmeter.light_typing import TYPE_CHECKING

if TYPE_CHECKING:
    import re

HIDDEN = "REDACTED"
URL = "URL"
"""The pattern for passwords in URLs: `https://user:password@host`."""
HEADER = "Authorization"
"""The pattern for what follows `Authorization:` and `Bearer`."""

DEFAULT = (
    "*password", "*passwd", "*passphrase", "*secret", "*token", "*api-key", "*access-key", "*secret-key",
    "*account-key", "*private-key-data",
    # Options of language models and parsers, such as `eos-token`, which are not secrets.
    *(f"!*{word}-token" for word in (
        "bos", "eos", "pad", "unk", "sep", "cls", "mask", "max", "min", "num", "start", "stop", "end", "per",
        "special", "image", "system", "user", "assistant",
    )),
    URL, HEADER,
)  # fmt: skip

_PROGRAMS = {
    "sshpass": "-p", "mysql": "-p", "mysqldump": "-p", "mysqladmin": "-p", "mariadb": "-p", "mariadb-dump": "-p",
}  # fmt: skip
"""Programs whose option `-p` takes a password; with other programs `-p` is a port, a page or a path."""
_ALONE = ("sshpass",)
"""Programs of these whose password may also be the word after the option."""


class Redaction:
    """Hides the values that patterns name. For most command lines, which have none, it only searches for some words."""

    def __init__(self, patterns: Sequence[str] | None = None) -> None:
        """Take these patterns; None means the default ones. Raises UsageError if a pattern is not valid."""
        chosen = expand(patterns)
        self._forms = [pattern for pattern in chosen if pattern in (URL, HEADER)]
        self._expressions = [_compiled(pattern) for pattern in chosen if pattern.startswith("/")]
        self._exceptions = tuple(pattern[1:] for pattern in chosen if pattern.startswith("!"))
        others = (URL, HEADER)
        self._names = tuple(each for each in chosen if not each.startswith(("/", "!")) and each not in others)
        self._hints = {_hint(name) for name in self._names}
        if URL in self._forms:
            self._hints.add("://")
        if HEADER in self._forms:
            self._hints.update(("authorization", "bearer"))
        if any("password" in name for name in self._names):
            self._hints.update(("mysql", "mariadb", "sshpass"))

    def __repr__(self) -> str:
        return f"<Redaction of {len(self._names) + len(self._expressions) + len(self._forms)} patterns>"

    def words(self, words: Sequence[str]) -> list[str]:
        """The words of a command, with secrets hidden."""
        if not words or not self._may_match(" ".join(words)):
            return list(words)
        shown = [self._word(words, number) for number in range(len(words))]
        return [shown[0], *self._of_program(words, shown[1:])] if "*password" in self._names else shown

    def text(self, text: str) -> str:
        """A command line as one text, a script or a message, with secrets hidden."""
        return self._inside(text) if self._may_match(text) else text

    def _may_match(self, text: str) -> bool:
        if self._expressions:
            return True
        lower = text.lower()
        return any(hint in lower for hint in self._hints)

    def _word(self, words: Sequence[str], number: int) -> str:
        word, before = words[number], words[number - 1] if number else ""
        if before.startswith("-") and "=" not in before and self._is_secret(before) and not word.startswith("--"):
            return HIDDEN
        name, equals, value = word.partition("=")
        # The rest of the word is the value, blanks included. But a script may begin with an assignment.
        is_script = before.startswith("-") and not before.startswith("--") and before.endswith("c")
        if equals and value and not is_script and self._is_secret(name):
            return f"{name}={HIDDEN}"
        return self._inside(word)

    def _is_secret(self, name: str) -> bool:
        """Whether a word, without its leading dashes, is the name of a secret."""
        if not self._names:
            return False
        expression = _names_expression(self._names, self._exceptions)
        return expression.fullmatch(name.lstrip("-")) is not None

    def _inside(self, text: str) -> str:
        """Hide values within a text. A value without quotes ends at a blank, a quote or a separator of parameters."""
        if self._names:
            text = _fields_expression(self._names, self._exceptions).sub(_hide_value, text)
        for form in self._forms:
            for expression in _form_expressions(form):
                text = expression.sub(_hide_group, text)
        for expression in self._expressions:
            text = expression.sub(_hide_group, text)
        return text

    def _of_program(self, words: Sequence[str], rest: list[str]) -> list[str]:
        program = words[0].rpartition("/")[2]
        option = _PROGRAMS.get(program)
        if option is None:
            return rest
        shown = []
        for number, word in enumerate(rest):
            before = rest[number - 1] if number else ""
            if before == option and program in _ALONE:
                word = HIDDEN
            elif word.startswith(option) and word != option:
                word = option + HIDDEN
            shown.append(word)
        return shown


@functools.cache
def redaction(patterns: tuple[str, ...] | None) -> Redaction:
    """The redaction with these patterns; None means the default ones. Raises UsageError if a pattern is not valid."""
    return Redaction(patterns)


def expand(patterns: Sequence[str] | None) -> list[str]:
    """The patterns, with the default ones in place of `default`. Raises UsageError for a pattern without a name."""
    if patterns is None:
        return list(DEFAULT)
    expanded: list[str] = []
    for pattern in patterns:
        if not pattern.strip("*!-"):
            raise UsageError(f"{pattern!r} is not a pattern: it has no name")
        expanded += DEFAULT if pattern == "default" else [pattern]
    return expanded


def _hint(name: str) -> str:
    """The longest part of the name, in lower case: a text without it cannot contain the name."""
    plain = name.lower()
    for character in "*-_.":
        plain = plain.replace(character, " ")
    return max(plain.split(), key=len, default="")


def _compiled(pattern: str) -> re.Pattern[str]:
    import re  # late: few command lines have something to hide

    try:
        return re.compile(pattern.strip("/"))
    except (re.error, OverflowError, RecursionError) as error:
        raise UsageError(f"{pattern!r} is not a regular expression: {error}") from None


def _name_source(names: Sequence[str]) -> str:
    import re

    sources = []
    for name in names:
        parts = [re.escape(part) for part in name.lstrip("-").replace("_", "-").replace(".", "-").split("-")]
        source = "[-_.]?".join(parts).replace(r"\*", r"[\w.-]*")
        # -Ddb.password is a password, too.
        sources.append(source if name.startswith("*") else rf"(?:[\w.-]*\.)?{source}")
    return "|".join(sources)


@functools.cache
def _names_expression(names: tuple[str, ...], exceptions: tuple[str, ...]) -> re.Pattern[str]:
    import re

    unless = rf"(?!(?:{_name_source(exceptions)})\Z)" if exceptions else ""
    return re.compile(rf"{unless}(?:{_name_source(names)})", re.IGNORECASE)


@functools.cache
def _fields_expression(names: tuple[str, ...], exceptions: tuple[str, ...]) -> re.Pattern[str]:
    """NAME=value, NAME: value, "NAME":"value", --NAME value."""
    import re

    unless = rf"(?!(?:{_name_source(exceptions)})(?![\w.-]))" if exceptions else ""
    # A match begins only where a name can begin: a long text is not searched again from each of its letters.
    name = rf"(?<![\w.-])-*(?!-){unless}(?:{_name_source(names)})"
    between = r"=|[\"']\s*:\s*|:\s+"
    option = rf"(?<![\w.-])--?(?!-){unless}(?:{_name_source(names)})\s+(?!-)"
    value = r"\"(?:[^\"\\]|\\.)*\"|'[^']*'|[^\s\"'&;,|)}]+"
    return re.compile(rf"((?:{name})(?:{between})|{option})({value})", re.IGNORECASE)


@functools.cache
def _form_expressions(form: str) -> tuple[re.Pattern[str], ...]:
    import re

    if form == URL:
        return (re.compile(r"://[^\s/:@?#\"']*:([^\s/?#\"']+)@"), re.compile(r"://([\w-]{20,})@"))
    return (
        re.compile(
            r"(?i:authorization)[\"']?\s*[:=]\s*[\"']?(?:(?i:basic|bearer|token|digest|negotiate)\s+)?([^\s\"']+)"
        ),
        re.compile(r"\b[Bb]earer\s+([\w.~+/=-]{8,})"),
    )


def _hide_value(match: re.Match[str]) -> str:
    value = match[2]
    quote = value[0] if value[0] in "\"'" else ""
    return f"{match[1]}{quote}{HIDDEN}{quote}"


def _hide_group(match: re.Match[str]) -> str:
    whole, begin = match[0], match.start()
    first, last = match.span(1) if match.re.groups and match[1] is not None else match.span()
    return whole[: first - begin] + HIDDEN + whole[last - begin :]


NOTHING_HIDDEN = Redaction(())
