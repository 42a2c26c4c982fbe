"""What to measure, as users write it: `default,-proc_cmd,perf_*`.

Keys, globs, `default` and `all` include; with a `-` in front they exclude, in any order. If there are only exclusions,
they are removed from the default. `none`, alone, selects nothing: then only time and outcome are recorded.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Callable

from jobmeter.collectors import Selected, default_plugins, load_all, load_builtin, load_default
from jobmeter.collectors.contract import Collector
from jobmeter.errors import UsageError, quote
from jobmeter.kernel.machine import Machine


def select_by(patterns: list[str], machine: Machine, warn: Callable[[str], None]) -> list[Selected]:
    """The collectors and keys that the patterns select. Raises UsageError if a pattern matches nothing."""
    if "none" in patterns:
        if len(patterns) > 1:
            raise UsageError("--measurements: `none` cannot be combined with other keys or exclusions")
        return []
    included = [pattern for pattern in patterns if not pattern.startswith("-")]
    excluded = [pattern[1:] for pattern in patterns if pattern.startswith("-")]
    collectors = _collectors([*included, *excluded], warn)
    keys = [m.key for collector in collectors for m in collector.measurements]
    usual = {key for collector in load_default(machine, _ignore) for key in collector.default}
    without = {key for pattern in excluded for key in _matching(pattern, keys, usual, "-")}
    named = {pattern for pattern in included if pattern in keys} - without
    chosen = {key for pattern in included if pattern != "default" for key in _matching(pattern, keys, usual)} - without
    by_default = (usual if "default" in included or not included else set()) - without
    selected = []
    for collector in collectors:
        own = frozenset(m.key for m in collector.measurements)
        wanted = own & (chosen | by_default)
        if wanted:
            selected.append(Selected(collector, wanted, own & named, own & (by_default - chosen)))
    return selected


def _collectors(words: list[str], warn: Callable[[str], None]) -> list[Collector]:
    """The collectors that the words can refer to. Those of other packages only if needed: finding them takes long."""
    plugins = default_plugins()
    collectors = [*load_builtin(), *(plugins.collectors if plugins is not None else ())]
    valid_words = {"default", *(m.key for collector in collectors for m in collector.measurements)}
    if not valid_words.issuperset(words):
        return load_all(warn)
    for fault in plugins.faults if plugins is not None else ():
        warn(fault)
    return collectors


def _matching(pattern: str, keys: list[str], usual: set[str], sign: str = "") -> set[str]:
    if pattern == "all":
        return set(keys)
    if pattern == "default":
        return usual
    matches = set(fnmatch.filter(keys, pattern))
    if not matches:
        from jobmeter.suggestion import suggest  # late: few runs need it

        hint = suggest(sign + pattern, [sign + key for key in keys], "")
        raise UsageError(
            f"--measurements: there is no {quote(sign + pattern)}. {hint + ' ' * bool(hint)}"
            "`jobmeter measurements` lists all."
        )
    return matches


def _ignore(message: str) -> None:
    """Ignore a warning that was already given."""
