"""What is executed for a command as people write it: a program where that is the same, else a shell."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Mapping

from jobmeter.errors import JobmeterError, quote
from jobmeter.launch.program import find_program
from jobmeter.workflow.spec.read.spec_errors import Problem

SHELL = "/bin/sh"
_SAFE = r"[\w@%+=:,./-]"
_WORD = rf"""(?:{_SAFE}|'[^']*'|"[^"$`\\!]*")+"""
_SIMPLE = re.compile(rf"[ \t]*{_WORD}(?:[ \t]+{_WORD})*\s*")
"""Words, quoted or not, that every shell takes for what they are."""
_SHELL_WORDS = """
    . : alias bg bind break builtin caller case cd chdir command compgen complete continue coproc declare dirs disown
    do done echo elif else enable esac eval exec exit export fc fg fi for function getopts hash help history if in jobs
    kill let local logout popd printf pushd pwd read readonly return select set shift shopt source suspend test then
    time times trap type typeset ulimit umask unalias unset until wait while
"""
_OF_THE_SHELL = frozenset(_SHELL_WORDS.split())
"""What a shell does itself, and not in the same way as a program of that name."""


class Programs:
    """Which words are programs, looked up once for each PATH."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = dict(environment)
        self._on_path_cache: dict[tuple[str, str | None], bool] = {}

    def is_program(self, word: str, directory: str, added: Mapping[str, str]) -> bool:
        """Whether a shell would execute a file for `word`: in a job's directory, with its variables."""
        if "/" in word:
            path = os.path.join(directory, word)
            return os.path.isfile(path) and os.access(path, os.X_OK)
        key = word, added.get("PATH")
        if key not in self._on_path_cache:
            self._on_path_cache[key] = _on_path(word, {**self._environment, **added})
        return self._on_path_cache[key]


def _on_path(word: str, environment: dict[str, str]) -> bool:
    try:
        # One that is found from here may not be found from the job's directory.
        return os.path.isabs(find_program(word, environment))
    except JobmeterError:
        return False


def shell_command(
    script: str, shell: bool | str, directory: str, added: Mapping[str, str], programs: Programs | None
) -> list[str]:
    """The words to execute for the text of a command. Problem when there are none.

    Like make, it uses no shell where the command needs none. What is not found goes to the shell, so that it
    fails as such a command does, with 127. Without `programs` nothing is looked up: it runs in a container.
    """
    if not script.strip():
        raise Problem("the command is empty")
    if shell is False:
        return split_words(script)
    if isinstance(shell, str):
        return [shell, "-c", script]
    if _SIMPLE.fullmatch(script):
        words = shlex.split(script)
        first = words[0]
        is_own = "=" in first or first in _OF_THE_SHELL
        if not is_own and (programs is None or programs.is_program(first, directory, added)):
            return words
    return [SHELL, "-c", script]


def invocation(script: str, shell: bool | str, directory: str) -> tuple[bool | str, str]:
    """What a job's command is put behind, and the shell for both.

    A script is named, or written out: its first line may name its shell. A file of the job's directory is found there.
    """
    if script.startswith("#!"):
        words = script[2:].partition("\n")[0].split()
        return (words[0] if len(words) == 1 else shell), script
    first = script.split(maxsplit=1)[0] if script.strip() else ""
    if first and "/" not in first and os.path.isfile(os.path.join(directory, first)):
        script = f"./{script.lstrip()}"
    return shell, script


def without_shell(command: list[str]) -> list[str]:
    """The words of `command` without a shell around them, whether or not there is one at present.

    That depends on the programs there are when the plan is made, which earlier jobs may have to make.
    """
    if command[:-1] == [SHELL, "-c"] and _SIMPLE.fullmatch(command[-1]):
        return shlex.split(command[-1])
    return command


def split_words(script: str) -> list[str]:
    """The words of a command without a shell."""
    try:
        words = shlex.split(script)
    except ValueError as error:
        raise Problem(f"{quote(script)} cannot be split into words: {error}") from None
    if not words:
        raise Problem("the command is empty")
    return words
