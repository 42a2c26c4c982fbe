"""`jobmeter __complete WORD…`: the completions of the last word on the command line, for the scripts of `completion`.

Each line is a candidate and, after a tab, its description. `:files`, `:directories` and `:commands` stand for all names
of that kind.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import sys
from collections.abc import Iterable, Iterator, Mapping

from jobmeter.cli.main import COMMANDS, Command
from jobmeter.cli.shared.filters import STATUSES
from jobmeter.cli.shared.options import Parser
from jobmeter.cli.shared.stored_names import run_names, workflow_names
from jobmeter.errors import JobmeterError
from jobmeter.settings import resolve
from jobmeter.terminal import printable

_FILES, _DIRECTORIES, _COMMANDS = ":files", ":directories", ":commands"
_RUNS, _WORKFLOWS = ("RUN", "NAME", "GLOB", "A", "B"), ("WORKFLOW", "SPEC")
"""Metavars of arguments that are names of runs, and of workflows."""
_PATHS = {"DIR": _DIRECTORIES, "FILE": _FILES, "SPEC": _FILES}
_NOT_NAMES = (
    "--container", "--container-name", "--prefix", "--engine", "--network", "--user", "--command-name", "--save",
    "--baseline", "--workers", "--metric",
)  # fmt: skip
"""Options with the metavar NAME whose value is not the name of a run."""


_LAUNCH = (["run"], ["bench"])
"""Commands of jobmeter whose last arguments are a command to run."""


def main(arguments: list[str]) -> int:
    for candidate, about in candidates(arguments):
        # A name may contain any character, and a line is one candidate: names that need escapes are left out.
        if candidate == printable(candidate):
            sys.stdout.write(f"{candidate}\t{printable(about)}\n" if about else f"{candidate}\n")
    return 0


def candidates(words: list[str]) -> Iterator[tuple[str, str]]:
    """The completions of the last word, each with a short description."""
    *before, current = words or [""]
    # bash splits `--status=failed` into three words.
    if current == "=":
        before, current = [*before, "="], ""
    if len(before) >= 2 and before[-1] == "=" and before[-2].startswith("--"):
        del before[-1]
    commands: Mapping[str, Command] = COMMANDS
    path: list[str] = []
    while before and before[0] in commands:
        path.append(before.pop(0))
        command = commands[path[-1]]
        module = importlib.import_module(command.module)
        commands = getattr(module, "COMMANDS", {}) if path == ["workflow"] else {}
        if not commands:
            yield from _of_command(path, module, before, current)
            return
    if not before:
        yield from ((name, command.help) for name, command in commands.items() if name.startswith(current))


def _of_command(path: list[str], module: object, before: list[str], current: str) -> Iterator[tuple[str, str]]:
    parser = parser_of(module)
    if parser is None:
        return
    actions = parser._option_string_actions
    if path in _LAUNCH and _command_begins(before, actions):
        yield (_COMMANDS, "") if before[-1:] == ["--"] else (_FILES, "")
        return
    store = _store(before)
    option, separator, value = current.partition("=")
    if before and _takes_value(actions.get(before[-1])):
        yield from _values(actions[before[-1]], current, store)
    elif separator and _takes_value(actions.get(option)):
        given = _values(actions[option], value, store)
        yield from ((word if word.startswith(":") else f"{option}={word}", about) for word, about in given)
    elif current.startswith("-"):
        yield from _options(actions, current)
    else:
        yield from _positional(parser, before, current, store)
        if path in _LAUNCH:
            yield _COMMANDS, ""


def parser_of(module: object) -> Parser | None:
    """The parser of a command, without running it."""
    Parser.described = []
    try:
        with contextlib.suppress(SystemExit, JobmeterError):
            module.main(["--help"])  # type: ignore[attr-defined]
        return Parser.described[0] if Parser.described else None
    finally:
        Parser.described = None


def _takes_value(action: argparse.Action | None) -> bool:
    return action is not None and action.nargs != 0


def _options(actions: Mapping[str, argparse.Action], current: str) -> Iterator[tuple[str, str]]:
    for option, action in actions.items():
        if option.startswith(current) and action.help != argparse.SUPPRESS:
            yield option, str(action.help or "").partition(" (")[0]


def _positional(parser: Parser, before: list[str], current: str, store: str) -> Iterator[tuple[str, str]]:
    """The completions of the next positional argument."""
    positionals = [action for action in parser._actions if not action.option_strings]
    actions = parser._option_string_actions
    given = 0
    for word, previous in zip(before, ["", *before]):
        is_value = _takes_value(actions.get(previous)) and "=" not in previous
        given += not word.startswith("-") and not is_value
    for action in positionals:
        if given and action.nargs in (None, "?"):
            given -= 1
            continue
        yield from _values(action, current, store)
        return


def _values(action: argparse.Action, current: str, store: str) -> Iterable[tuple[str, str]]:
    name = str(action.metavar or action.dest or "")
    if action.choices is not None:
        return [(str(each), "") for each in action.choices if str(each).startswith(current)]
    if "--status" in action.option_strings:
        return [(status, "") for status in STATUSES if status.startswith(current)]
    if {"--sort", "--fields"} & set(action.option_strings):
        return _fields(current)
    kinds = set(name.split("|"))
    candidates: list[tuple[str, str]] = []
    if kinds.intersection(_RUNS) and not set(_NOT_NAMES) & set(action.option_strings):
        candidates += [(each, "") for each in run_names(store, current)]
        candidates += [("last", "the newest run")] if "RUN" in kinds and "last".startswith(current) else []
    if kinds.intersection(_WORKFLOWS):
        candidates += [(each, "workflow") for each in workflow_names(store, current)]
    return [*candidates, (_PATHS[name], "")] if name in _PATHS else candidates


def _fields(current: str) -> list[tuple[str, str]]:
    """The completions of the last name in a list with commas."""
    from jobmeter.store.query.fields import FIELDS  # late: it loads the store

    *others, last = current.split(",")
    begin = "".join(f"{each}," for each in others)
    return [(f"{begin}{name}", "") for name in FIELDS if name.startswith(last)]


def _command_begins(before: list[str], actions: Mapping[str, argparse.Action]) -> bool:
    """Whether the command to run has begun, so that further words belong to it."""
    for word, previous in zip(before, ["", *before]):
        if word == "--" or (not word.startswith("-") and not _takes_value(actions.get(previous))):
            return True
    return False


def _store(before: list[str]) -> str:
    for word, following in zip(before, [*before[1:], ""]):
        if word == "--store" and following:
            return str(resolve("store", following))
        if word.startswith("--store="):
            return str(resolve("store", word.partition("=")[2]))
    return str(resolve("store", None, lambda message: None))
