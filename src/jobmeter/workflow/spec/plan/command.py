"""What is executed for the text of a command: the program itself if that has the same effect, else a shell."""

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
"""Words, quoted or not, that every shell takes literally."""
_SHELL_WORDS = """
    . : alias bg bind break builtin caller case cd chdir command compgen complete continue coproc declare dirs disown
    do done echo elif else enable esac eval exec exit export fc fg fi for function getopts hash help history if in jobs
    kill let local logout popd printf pushd pwd read readonly return select set shift shopt source suspend test then
    time times trap type typeset ulimit umask unalias unset until wait while
"""
_OF_THE_SHELL = frozenset(_SHELL_WORDS.split())
"""Words that a shell handles itself, and not in the same way as a program of that name."""


class Programs:
    """Finds out which words are programs; each is looked up once for each PATH."""

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
        # A program with a relative path, found from here, may not be found from the job's directory.
        return os.path.isabs(find_program(word, environment))
    except JobmeterError:
        return False


def shell_command(
    script: str, shell: bool | str | list[str], directory: str, added: Mapping[str, str], programs: Programs | None
) -> list[str]:
    """The words to execute for the text of a command. Raises Problem if there are none.

    `shell` is a path or, with arguments, a list; True is the usual shell, False none.

    Like make, it uses no shell if the command needs none. A program that is not found is left to the shell, so that
    the job fails as usual, with 127. If `programs` is None nothing is looked up: the command runs in a container.
    """
    if not script.strip():
        raise Problem("the command is empty")
    if shell is False:
        return split_words(script)
    if not isinstance(shell, bool):
        return [*([shell] if isinstance(shell, str) else shell), "-c", script]
    if _SIMPLE.fullmatch(script):
        words = shlex.split(script)
        first = words[0]
        is_own = "=" in first or first in _OF_THE_SHELL
        if not is_own and (programs is None or programs.is_program(first, directory, added)):
            return words
    return [SHELL, "-c", script]


def interpreter(script: str) -> list[str]:
    """The interpreter that the first line of a script names with `#!`, and its argument; empty if it names none.

    As for the kernel (execve(2)), all that follows the interpreter is one argument.
    """
    return script[2:].partition("\n")[0].strip().split(maxsplit=1) if script.startswith("#!") else []


def invocation(script: str, shell: bool | str, directory: str) -> tuple[bool | str | list[str], str]:
    """The shell for an invocation script, and the text of the script, behind which the job's command is put.

    `script` is the name of a script, or its text, whose first line may name a shell. A file name without a slash is
    looked up in the job's directory.
    """
    if script.startswith("#!"):
        return interpreter(script) or shell, script
    first = script.split(maxsplit=1)[0] if script.strip() else ""
    if first and "/" not in first and os.path.isfile(os.path.join(directory, first)):
        script = f"./{script.lstrip()}"
    return shell, script


def without_shell(command: list[str]) -> list[str]:
    """The words of `command`, without the shell that `shell_command` may have put around them.

    Whether it did depends on the programs that exist when the plan is made, and earlier jobs may have to make some.
    """
    if command[:-1] == [SHELL, "-c"] and _SIMPLE.fullmatch(command[-1]):
        return shlex.split(command[-1])
    return command


def split_words(script: str) -> list[str]:
    """The words of a command that is executed without a shell. Raises Problem if it cannot be split into words."""
    try:
        words = shlex.split(script)
    except ValueError as error:
        raise Problem(f"{quote(script)} cannot be split into words: {error}") from None
    if not words:
        raise Problem("the command is empty")
    return words
