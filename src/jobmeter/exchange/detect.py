"""Recognises which tool wrote a file by its content. Its name only matters for empty or torn logs of con-duct."""

from __future__ import annotations

import os
from importlib import import_module
from typing import Any, BinaryIO, Protocol, cast

from jobmeter.errors import UsageError
from jobmeter.exchange import duct
from jobmeter.exchange.foreign import Items

_LOOKED_AT = 256 * 1024


class Format(Protocol):
    """A module that reads the files of one tool."""

    KIND: str  # as `import --from` takes it
    WORDS: str  # what the file is, for people

    @staticmethod
    def fits(first_line: str, beginning: str) -> bool:
        """Whether a file with this beginning is of this format."""

    @staticmethod
    def read(path: str, file: BinaryIO) -> Items:
        """The runs in the file."""


MODULES = ("records", "duct", "slurm", "nextflow", "nextflow_task", "gnutime")
"""Modules of this package, one per format, in the order in which they are tried."""


def _load(name: str) -> Format:
    module: Any = import_module(f"jobmeter.exchange.{name}")
    return cast("Format", module)


FORMATS: dict[str, Format] = {each.KIND: each for each in map(_load, MODULES)}


def kinds_in_words() -> str:
    return "; ".join(f"{kind}: {each.WORDS}" for kind, each in FORMATS.items())


def recognise(path: str, file: BinaryIO, only: str | None = None) -> str:
    """The kind of a file. Raises UsageError if it is unknown, or not `only` this one. Rewinds the file."""
    data = file.read(_LOOKED_AT)
    file.seek(0)
    if not data.strip():
        if only in (None, "duct") and os.path.basename(path).endswith(duct.INFO):
            return "duct"
        raise UsageError(f"{path}: is empty, so there is nothing to import")
    start = data.decode("utf-8-sig", errors="replace")
    first = start.split("\n", 1)[0].rstrip("\r")
    for kind, each in FORMATS.items():
        if only in (None, kind) and each.fits(first, start):
            return kind
    if only in (None, "duct") and os.path.basename(path).endswith(duct.INFO) and start.lstrip().startswith("{"):
        return "duct"  # a torn file: the reader of this format reports what is wrong
    raise UsageError(f"{path}: its format is not recognised. Name it with --from KIND ({kinds_in_words()})")
