"""Which tool wrote a file: recognised by its content, so that its name does not matter."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from typing import BinaryIO, NamedTuple

from jobmeter.errors import UsageError
from jobmeter.exchange import duct, gnutime, nextflow, records, slurm
from jobmeter.exchange.foreign import Items
from jobmeter.record.build import SCHEMA

_LOOKED_AT = 256 * 1024


class Reader(NamedTuple):
    """A kind of file: what it is in words, how it is read, and what its first bytes look like."""

    words: str
    read: Callable[[str, BinaryIO], Items]
    fits: Callable[[str, str], bool]  # (first line, beginning)


READERS = {
    "jobmeter": Reader(
        "run records of jobmeter, JSON Lines", records.read, lambda first, _: _json_has(first, "schema", SCHEMA)
    ),
    "duct": Reader("logs of con-duct", duct.read, lambda first, start: "duct_version" in _object(first, start)),
    "slurm": Reader("`sacct -P`", slurm.read, lambda first, _: slurm.header_columns(first) is not None),
    "nextflow": Reader(
        "a trace of Nextflow", nextflow.read, lambda first, _: nextflow.header_columns(first) is not None
    ),
    "gnutime": Reader(
        "GNU `time -v`",
        gnutime.read,
        lambda _, start: any(line.startswith(gnutime.OPENING) for line in start.split("\n")),
    ),
}


def recognise(path: str, file: BinaryIO) -> str:
    """The kind of a file; UsageError when it is none. Leaves the file at its beginning."""
    data = file.read(_LOOKED_AT)
    file.seek(0)
    if not data.strip():
        if os.path.basename(path).endswith(duct.INFO):
            return "duct"
        raise UsageError(f"{path}: is empty, so there is nothing to import")
    start = data.decode("utf-8-sig", errors="replace")
    first = start.split("\n", 1)[0].rstrip("\r")
    for kind, reader in READERS.items():
        if reader.fits(first, start):
            return kind
    if os.path.basename(path).endswith(duct.INFO):
        return "duct"  # a torn one: its reader says what is wrong
    kinds = "; ".join(f"{kind}: {reader.words}" for kind, reader in READERS.items())
    raise UsageError(f"{path}: its format is not recognised. Name it with --from KIND ({kinds})")


def _object(first: str, start: str) -> dict[str, object]:
    """The JSON object in one line, or in a small file that was indented."""
    for text in (first, start):
        try:
            value = json.loads(text)
        except ValueError:
            continue
        if isinstance(value, dict):
            return value
    return {}


def _json_has(first: str, key: str, value: str) -> bool:
    # By text: a record with many windows may be longer than the part that was read.
    return first.startswith("{") and (f'"{key}": "{value}"' in first or f'"{key}":"{value}"' in first)
