"""What one job reads and makes: by its fields, and by references in its command such as `${files.input.raw}`."""

from __future__ import annotations

import os
import re

from jobmeter.errors import quote
from jobmeter.suggestion import suggest
from jobmeter.workflow.plan import UserData, data_reference
from jobmeter.workflow.spec.plan.resources import FilePath, Named
from jobmeter.workflow.spec.read.spec_errors import Problem

_REFERENCE = re.compile(r"\$\{(files|user_data)\.([^.{}]*)\.((?:[^{}]|\{[^{}]*\})*)\}")
_SIDES = ("input", "output")


class Relations:
    """Collects the paths of files and the names of user data, each once."""

    def __init__(self, files: Named[FilePath], data: Named[UserData]) -> None:
        self.inputs: dict[str, None] = {}
        self.outputs: dict[str, None] = {}
        self.input_data: dict[str, None] = {}
        self.output_data: dict[str, None] = {}
        self._files = files
        self._data = data

    def add_file(self, side: str, reference: str) -> list[FilePath]:
        """Add the files that a reference means, and return them. Raises Problem if there is none."""
        return self._add_paths(side, self._files.find(reference))

    def add_files_matching(self, side: str, expression: str) -> None:
        self._add_paths(side, self._files.matching(expression))

    def add_data(self, side: str, reference: str) -> list[str]:
        return self._add_names(side, self._data.find(reference))

    def add_data_matching(self, side: str, expression: str) -> None:
        self._add_names(side, self._data.matching(expression))

    def resolved(self, text: str, directory: str) -> str:
        """`text` with paths in place of references; user data has another path in each run: see `data_reference`."""
        if "${" not in text:
            return text
        return _REFERENCE.sub(lambda match: self._replacement(match, directory), text)

    def _replacement(self, match: re.Match[str], directory: str) -> str:
        kind, side, name = match.groups()
        if side not in _SIDES:
            raise Problem(f"{quote(match[0])} is neither of input nor of output. {suggest(side, _SIDES)}")
        if kind == "user_data":
            return " ".join(data_reference(each) for each in self.add_data(side, name))
        return " ".join(_as_seen_from(directory, path) for path in self.add_file(side, name))

    def _add_paths(self, side: str, files: list[tuple[str, FilePath]]) -> list[FilePath]:
        paths = self.inputs if side == "input" else self.outputs
        paths.update((path.absolute, None) for _, path in files)
        return [path for _, path in files]

    def _add_names(self, side: str, data: list[tuple[str, UserData]]) -> list[str]:
        names = self.input_data if side == "input" else self.output_data
        names.update((name, None) for name, _ in data)
        return [name for name, _ in data]


def _as_seen_from(directory: str, path: FilePath) -> str:
    """The path as written in the spec if it means the same file in the job's directory, else the absolute path."""
    same = os.path.normpath(os.path.join(directory, path.written)) == path.absolute
    return path.written if same else path.absolute
