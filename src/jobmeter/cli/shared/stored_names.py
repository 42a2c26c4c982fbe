"""Names of stored runs and workflows for shell completion. To be fast, it imports only the standard library.

The index is read without being updated; the names of runs that are newer than the index come from their journals.
"""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
from collections.abc import Iterator

_MOST = 200
"""The most candidates to offer: a longer list does not help."""
_MOST_FILES = 20_000
"""In a directory with more journals, new ones are not looked for: that would take longer than a person waits."""
_MOST_NEW = 100

_NAMES = """
WITH RECURSIVE names(name) AS (
    SELECT min(job_name) FROM job_metadata WHERE job_name >= :prefix
    UNION ALL
    SELECT (SELECT min(job_name) FROM job_metadata WHERE job_name > names.name) FROM names WHERE names.name IS NOT NULL
)
SELECT name FROM names WHERE substr(name, 1, length(:prefix)) = :prefix LIMIT :most
"""
"""Steps from one name to the next in the SQL index: the number of runs of each name does not matter."""
_IDS = "SELECT job_id FROM job_metadata WHERE job_id >= :prefix AND job_id < :prefix || x'7f' LIMIT :most"


def run_names(store: str, prefix: str) -> list[str]:
    """Names of jobs that begin with `prefix`; if it is not empty, also ids of runs."""
    names = dict.fromkeys(_indexed(store, _NAMES, prefix))
    if prefix:
        names.update(dict.fromkeys(_indexed(store, _IDS, prefix)))
    names.update(dict.fromkeys(name for name in _new_names(store) if name.startswith(prefix)))
    return list(names)[:_MOST]


def workflow_names(store: str, prefix: str) -> list[str]:
    """Ids of workflows that were run, if they begin with `prefix`."""
    with contextlib.suppress(OSError):
        return sorted(name for name in os.listdir(f"{store}/workflows") if name.startswith(prefix))[:_MOST]
    return []


def _indexed(store: str, statement: str, prefix: str) -> list[str]:
    path = f"{store}/index.db"
    if not os.path.exists(path):
        return []
    quoted = "".join(f"%{ord(letter):02x}" if letter in "%?#" else letter for letter in path)
    try:
        with contextlib.closing(sqlite3.connect(f"file:{quoted}?mode=ro", uri=True, timeout=0.2)) as database:
            rows = database.execute(statement, {"prefix": prefix, "most": _MOST})
            return [row[0] for row in rows if isinstance(row[0], str)]
    except (sqlite3.Error, UnicodeError):
        return []  # while a user types, no names are better than an error


def _new_names(store: str) -> Iterator[str]:
    """Names of the runs whose journals are newer than the index."""
    directory = f"{store}/journal"
    try:
        indexed = os.stat(f"{store}/index.db").st_mtime if os.path.exists(f"{store}/index.db") else 0.0
        if os.stat(directory).st_mtime <= indexed:
            return
        new = []
        with os.scandir(directory) as entries:
            for number, entry in enumerate(entries):
                if number == _MOST_FILES:
                    return
                if entry.name.endswith(".jsonl") and entry.stat(follow_symlinks=False).st_mtime > indexed:
                    new.append(entry.path)
    except OSError:
        return
    for path in new[:_MOST_NEW]:
        try:
            with open(path, "rb") as file:
                header = json.loads(file.readline(1 << 20))
        except (OSError, ValueError):
            continue  # it has just begun, or may not be read
        if isinstance(header, dict) and isinstance(header.get("name"), str):
            yield header["name"]
