"""`jobmeter completion`: the script that lets a shell complete commands, options, runs and workflows."""

from __future__ import annotations

import os
import sys

from jobmeter.cli.shared.options import Parser

_SCRIPTS = os.path.join(os.path.dirname(__file__), "completion_scripts")
SHELLS = ("bash", "zsh", "fish")
_EPILOG = (
    'bash: add `eval "$(jobmeter completion bash)"` to ~/.bashrc. zsh: the same with zsh in ~/.zshrc, after compinit. '
    "fish: jobmeter completion fish > ~/.config/fish/completions/jobmeter.fish"
)


def main(arguments: list[str]) -> int:
    parser = Parser("completion", "Print the script that completes commands, options, names of runs and workflows.")
    parser.epilog = _EPILOG
    parser.add_argument("shell", choices=SHELLS, help="the shell that reads it")
    shell = parser.parse_args(arguments).shell
    with open(os.path.join(_SCRIPTS, f"jobmeter.{shell}"), encoding="utf-8") as script:
        sys.stdout.write(script.read())
    return 0
