"""The JSON Schemas that are shipped in the package, by name."""

from __future__ import annotations

import os

NAMES = {
    "run": "the run record: what `run --report` and `show --json` give",
    "cluster": "the report of a cluster: what `cluster --json` gives",
}
"""Name → what it is the schema of."""


def path_of(name: str) -> str:
    """The file of the schema of this name."""
    return f"{os.path.dirname(os.path.abspath(__file__))}/{name}.schema.json"


def read_schema(name: str) -> str:
    with open(path_of(name), encoding="utf-8") as file:
        return file.read()
