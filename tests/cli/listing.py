"""Commands on a store, called in this process."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import pytest

from jobmeter.cli.main import main
from tests.records import parse_record
from tests.store.kept import five, kept


class Printed(NamedTuple):
    code: int
    out: str
    err: str


class Commands:
    """`jobmeter COMMAND --store …` and what it prints."""

    def __init__(self, folder: Path, capture: pytest.CaptureFixture[str]) -> None:
        self.folder = folder
        self._capture = capture

    def __call__(self, command: str, *arguments: str) -> Printed:
        code = main([command, "--store", str(self.folder), *arguments])
        printed = self._capture.readouterr()
        if code == 0 and command == "show" and "--json" in arguments:
            parse_record(printed.out)
        return Printed(code, printed.out, printed.err)

    def keep(self, *runs: Any) -> Commands:
        """Keep these runs, or five of three jobs."""
        kept(self.folder, *(runs or five()))
        return self
