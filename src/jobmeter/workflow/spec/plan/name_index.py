"""Finding what a reference in a spec means: one name, all of a sweep, a pattern or a regular expression."""

from __future__ import annotations

import fnmatch
import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence

from jobmeter.errors import quote
from jobmeter.suggestion import suggest
from jobmeter.workflow.spec.read.spec_errors import Problem

_WILD = re.compile(r"[*?\[]")
_PLACEHOLDER = re.compile(r"\{([A-Za-z_]\w*)(?::[^{}]*)?\}")


class NameIndex:
    """Names of one kind, numbered from 1, each with the template that it was made from.

    `unknown` are templates of entries that could not be expanded: whether a reference means one of those is not known.
    """

    def __init__(self, kind: str, names: Sequence[str], templates: Sequence[str], unknown: Iterable[str] = ()) -> None:
        self._kind = kind
        self._names = names
        self._numbers = {name: number for number, name in enumerate(names, 1)}
        self._by_template: dict[str, list[int]] = {}
        for number, template in enumerate(templates, 1):
            self._by_template.setdefault(template, []).append(number)
        self._unknown = list(unknown)
        self._sorted: list[str] | None = None
        self._resolved: dict[str, tuple[int, ...]] = {}

    def numbers(self, reference: str) -> tuple[int, ...]:
        """The numbers of the names that a reference means, ascending. Raises Problem if there is none."""
        numbers = self._resolved.get(reference)
        if numbers is None:
            numbers = self._resolved[reference] = self._meaning(reference)
        return numbers

    def matching(self, expression: str) -> tuple[int, ...]:
        """The numbers of the names that a regular expression matches.

        Raises Problem if there is none, or the expression is not valid.
        """
        key = f"\0{expression}"
        if key not in self._resolved:
            try:
                search = re.compile(expression).search
            except re.error as error:
                raise Problem(f"{quote(expression)} is not a regular expression: {error}") from None
            numbers = tuple(number for number, name in enumerate(self._names, 1) if search(name))
            if not numbers and not self._may_be_unknown(search):
                raise Problem(f"no {self._kind}'s name matches {quote(expression)}. {self._hint(expression)}")
            self._resolved[key] = numbers
        return self._resolved[key]

    def _may_be_unknown(self, matches: Callable[[str], object]) -> bool:
        """Whether an entry that could not be expanded may have names that match."""
        return any(_PLACEHOLDER.search(template) or matches(template) for template in self._unknown)

    def _meaning(self, reference: str) -> tuple[int, ...]:
        if reference in self._numbers:
            return (self._numbers[reference],)
        if reference in self._by_template:
            return tuple(self._by_template[reference])
        if _PLACEHOLDER.search(reference) and (numbers := self._of_template(reference)):
            return numbers
        if any(_pattern(template).fullmatch(reference) for template in self._unknown):
            return ()
        wild = _WILD.search(reference)
        if wild is None:
            raise Problem(f"there is no {self._kind} {quote(reference)}. {self._hint(reference)}")
        numbers = self._wild(reference, reference[: wild.start()])
        if not numbers and not self._may_be_unknown(re.compile(fnmatch.translate(reference)).match):
            raise Problem(f"no {self._kind}'s name matches {quote(reference)}. {self._hint(reference)}")
        return numbers

    def _of_template(self, reference: str) -> tuple[int, ...]:
        """What `train_1_{b}` means to a job without a parameter b: `train_{a}_{b}` with a = 1 and every b."""
        asked = {match[1] for match in _PLACEHOLDER.finditer(reference)}
        plain = _PLACEHOLDER.sub(r"{\1}", reference)
        candidates: list[int] = []
        for template, numbers in self._by_template.items():
            has = {match[1] for match in _PLACEHOLDER.finditer(template)}
            if asked <= has and _pattern(template).fullmatch(plain):
                candidates += numbers
        matches = _pattern(reference).fullmatch
        among = sorted(candidates) or range(1, len(self._names) + 1)
        return tuple(number for number in among if matches(self._names[number - 1]))

    def _wild(self, pattern: str, beginning: str) -> tuple[int, ...]:
        """The numbers of the names that match `train_*`; only names with the same beginning are compared."""
        if self._sorted is None:
            self._sorted = sorted(self._names)
        matches = re.compile(fnmatch.translate(pattern)).match
        numbers = []
        for position in range(bisect_left(self._sorted, beginning), len(self._sorted)):
            name = self._sorted[position]
            if not name.startswith(beginning):
                break
            if matches(name):
                numbers.append(self._numbers[name])
        return tuple(sorted(numbers))

    def _hint(self, reference: str) -> str:
        return suggest(reference, [*self._numbers, *self._by_template])


def _pattern(template: str) -> re.Pattern[str]:
    """A regular expression for the names that can be made from a template."""
    parts, at = [], 0
    for match in _PLACEHOLDER.finditer(template):
        parts += [re.escape(template[at : match.start()]), "(?:.+)"]
        at = match.end()
    return re.compile("".join([*parts, re.escape(template[at:])]), re.DOTALL)
